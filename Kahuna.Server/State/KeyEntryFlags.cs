namespace Kahuna.Server.State;

/// <summary>What a revision of a key is besides its bytes.</summary>
[Flags]
internal enum KeyEntryFlags : byte
{
    None = 0,

    /// <summary>The revision is a deletion; it has no value.</summary>
    Deleted = 1,

    /// <summary>The value is null, not empty.</summary>
    Null = 2,
}
