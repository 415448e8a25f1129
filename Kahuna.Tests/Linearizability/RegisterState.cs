namespace Kahuna.Tests.Linearizability;

/// <summary>One key at one moment. A key that was never written is one that was deleted at revision 0. Immutable.</summary>
/// <param name="Value">Its number in the <see cref="ValueTable"/>; <see cref="ValueTable.Absent"/> when there is no key.</param>
/// <param name="Revision">Of the last write or deletion; at most two per operation.</param>
/// <param name="Deadline">The operation that set the time to live, plus 1; 0 when there is none.</param>
internal readonly record struct RegisterState(int Value, int Revision, int Deadline)
{
    public static RegisterState NeverWritten { get; } = new(ValueTable.Absent, 0, 0);

    public bool Exists => Value != ValueTable.Absent;

    public bool Expires => Deadline != 0;

    public RegisterState Written(int value, int deadline) => new(value, Revision + 1, deadline);

    public RegisterState Removed() => new(ValueTable.Absent, Revision + 1, 0);

    /// <summary>All of it in one word that is never 0, with room for one more bit at the bottom.</summary>
    public ulong Packed => ((ulong)(uint)Value << 32) | ((ulong)(uint)Revision << 16) | ((ulong)(uint)Deadline << 1);
}
