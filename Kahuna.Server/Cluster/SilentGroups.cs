namespace Kahuna.Server.Cluster;

/// <summary>
/// Groups that did not answer when they were asked last, because they have no leader. One work at a time may try such a
/// group, so that the others go on with groups that answer. Owned by a <see cref="TransactionSettler"/>; guarded by its
/// lock.
/// </summary>
internal sealed class SilentGroups
{
    private readonly HashSet<int> _silent = [];
    private readonly HashSet<int> _tried = [];

    /// <summary>
    /// Begins a work that asks these groups. Returns those that it tries; null: one of them is being tried.
    /// </summary>
    /// <param name="groups">Their indexes.</param>
    public int[]? TryBegin(int[] groups)
    {
        if (groups.Any(_tried.Contains))
        {
            return null;
        }

        int[] tries = [.. groups.Where(_silent.Contains)];
        _tried.UnionWith(tries);
        return tries;
    }

    /// <summary>The work that tried them has ended.</summary>
    public void End(int[] tries) => _tried.ExceptWith(tries);

    /// <summary>A group has answered, or has not.</summary>
    public void Report(int group, bool hasAnswered)
    {
        if (hasAnswered)
        {
            _silent.Remove(group);
        }
        else
        {
            _silent.Add(group);
        }
    }
}
