namespace Kahuna.Tests.Linearizability;

/// <summary>
/// One key at one moment. A key that was never written is one that was deleted at revision 0. Immutable.
/// </summary>
/// <param name="Value">Its number in the <see cref="ValueTable"/>; <see cref="ValueTable.Absent"/> when there is no
/// key.</param>
/// <param name="Revision">Of the last write or deletion; higher by at most two per operation, but for a key that was
/// deleted and may have been forgotten.</param>
/// <param name="Deadline">The operation that set the time to live, plus 1; 0 when there is none.</param>
/// <param name="IsAtLeast">The revision is this or a higher one: the key was made anew by an operation whose answer
/// does not tell.</param>
internal readonly record struct RegisterState(int Value, int Revision, int Deadline, bool IsAtLeast = false)
{
    public static RegisterState NeverWritten { get; } = new(ValueTable.Absent, 0, 0);

    public bool Exists => Value != ValueTable.Absent;

    public bool Expires => Deadline != 0;

    /// <summary>
    /// The next revision; of a key that was not there, any that is higher, because it may have been forgotten
    /// meanwhile.
    /// </summary>
    public RegisterState Written(int value, int deadline) => new(value, Revision + 1, deadline, IsAtLeast || !Exists);

    public RegisterState Removed() => new(ValueTable.Absent, Revision + 1, 0, IsAtLeast);

    /// <summary>The state when its revision is this one; false when it cannot be.</summary>
    public bool TryBe(long revision, out RegisterState state)
    {
        // The caller may have asked for the answer in the place of this very state.
        bool isPossible = revision == Revision || (IsAtLeast && revision > Revision);
        state = this with { Revision = (int)revision, IsAtLeast = false };
        return isPossible;
    }

    /// <summary>All of it in one word that is never 0, with room for one more bit at the bottom.</summary>
    public ulong Packed =>
        ((ulong)(uint)(Value + 2) << 43)
            | ((ulong)(uint)Revision << 17)
            | ((ulong)(uint)Deadline << 2)
            | (IsAtLeast ? 2UL : 0);
}
