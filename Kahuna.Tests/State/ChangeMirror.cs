using System.Text;
using Kahuna.Server.State.Rows;

namespace Kahuna.Tests.State;

/// <summary>
/// Builds what can be read of a state from nothing but the changes that are told, and checks each of them against what
/// was told before. Used by one test at a time.
/// </summary>
internal sealed class ChangeMirror : IChangeSink
{
    /// <summary>Every change, in order.</summary>
    public List<(ChangePosition Position, ChangeKind Kind, string Key, Revision Revision, string? Value)> Told { get; }
        = [];

    public Dictionary<string, Key> Keys { get; } = [];

    public void Changed(in ChangePosition position, scoped in Change change)
    {
        string name = Encoding.UTF8.GetString(change.Key);
        string? value = change.Kind == ChangeKind.Written && !change.IsNull
            ? Encoding.UTF8.GetString(change.Value)
            : null;
        if (Told.Count > 0)
        {
            ChangePosition last = Told[^1].Position;
            Assert.True(
                position.Index > last.Index ? position.N == 0 : position == last with { N = last.N + 1 },
                $"{last} then {position}");
        }

        Told.Add((position, change.Kind, name, change.Revision, value));
        Keys.TryGetValue(name, out Key? key);
        switch (change.Kind)
        {
            case ChangeKind.Written:
                Assert.True(
                    key is null || change.Revision > key.Revision, $"{name} is written twice under {change.Revision}");
                Keys[name] = key ??= new Key();
                key.Replace(in change, exists: true, value);
                break;
            case ChangeKind.Deleted or ChangeKind.Expired:
                Assert.True(
                    key is { Exists: true } && change.Revision > key.Revision, $"{name} is deleted and was not there");
                key.Replace(in change, exists: false, null);
                break;
            case ChangeKind.Evicted or ChangeKind.Forgotten:
                Assert.True(key is not null && key.Revision == change.Revision, $"{name} goes and was not there");
                Assert.Equal(change.Kind == ChangeKind.Evicted, key.Exists);
                Keys.Remove(name);
                break;
            case ChangeKind.HistoryCut:
                Assert.True(
                    key is not null && (key.Kept.ContainsKey(change.Revision) || key.Revision == change.Revision),
                    $"{name} has no revision {change.Revision}");
                Assert.True(key.CutUpTo < change.Revision);
                key.CutUpTo = change.Revision;
                foreach (Revision revision in key.Kept.Keys.Where(kept => kept <= key.CutUpTo).ToList())
                {
                    key.Kept.Remove(revision);
                }

                break;
            default:
                Assert.Fail($"{change.Kind}");
                break;
        }
    }

    /// <summary>One key, deleted ones included, with the replaced revisions that can be read.</summary>
    internal sealed class Key
    {
        public bool Exists { get; private set; }

        public Revision Revision { get; private set; }

        public string? Value { get; private set; }

        public Revision CutUpTo { get; set; }

        public SortedDictionary<Revision, (bool Exists, string? Value)> Kept { get; } = [];

        public void Replace(scoped in Change change, bool exists, string? value)
        {
            if (change.IsPreviousKept)
            {
                Kept[Revision] = (Exists, Value);
            }

            (Exists, Revision, Value) = (exists, change.Revision, value);
        }
    }
}
