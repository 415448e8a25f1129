using System.Text;
using Kahuna.Client.Watches;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Routing;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// What one watch has to be told: the changes of its keys, each once and in order, transactions as a whole, and a word
/// wherever some may be missing. It goes on over streams and nodes, from its own points. Owned by one watcher.
/// </summary>
internal sealed class WatchedKeys
{
    public const string Rule = "a watch is told every change of its keys once and in order, or that some are gone";
    public const string SoonRule = "a watch is told soon what its node has applied, where nothing is in the way";
    public const string WholeRule = "a watch is told a transaction as a whole";

    private readonly ChangeRules _changes;
    private readonly Action<string, string> _breaks;
    private readonly string _who;
    private readonly GroupLayout _layout;
    private readonly WatchScope _scope;
    private readonly byte[] _name;
    private readonly bool _withValues;
    private readonly Place?[] _places;

    public WatchedKeys(
        SimCluster cluster, string who, Durability durability, WatchScope scope, string name, bool withValues)
    {
        _changes = cluster.Rules.Changes;
        _breaks = cluster.Rules.Break;
        _who = $"{who}, a watch of {durability} {scope} \"{name}\"";
        _scope = scope;
        _name = Encoding.UTF8.GetBytes(name);
        _withValues = withValues;
        Durability = durability;
        _layout = cluster.Config.Layout;
        int groups = cluster.Config.Layout.Count;
        _places = new Place?[groups];
        for (int slot = 0; slot < groups; slot++)
        {
            GroupId group = cluster.Config.Layout.GroupOf(slot);
            _places[slot] = group.IsMeta || group.IsEphemeral != (durability == Durability.Ephemeral)
                ? null
                : new Place(_changes.Of(slot)!);
        }
    }

    public Durability Durability { get; }

    public override string ToString() => _who;

    public WatchScope Scope => _scope;

    public ReadOnlySpan<byte> Name => _name;

    public WatchFlags Flags => _withValues ? WatchFlags.WithValues : WatchFlags.None;

    /// <summary>The node has said that the watch has begun on the current stream.</summary>
    public bool HasBegun { get; private set; }

    /// <summary>Changes that it was told.</summary>
    public long Told { get; private set; }

    /// <summary>Transactions that it was told, each as a whole.</summary>
    public long Transactions { get; private set; }

    /// <summary>The watch is asked of another stream, from where it is.</summary>
    public void Restart()
    {
        HasBegun = false;
        foreach (Place? place in _places)
        {
            place?.Restart();
        }
    }

    /// <summary>Where it is in each group that it knows, encoded.</summary>
    public byte[] Points()
    {
        ChangePoint[] points = [.. _places.Where(static place => place?.Safe is not null).Select(
            static place => place!.Safe!.Value)];
        byte[] encoded = new byte[points.Length * ChangePoint.Bytes];
        for (int i = 0; i < points.Length; i++)
        {
            points[i].Write(encoded.AsSpan(i * ChangePoint.Bytes));
        }

        return encoded;
    }

    /// <summary>The same keys, from here on.</summary>
    public WatchedKeys Copy(SimCluster cluster, string who)
    {
        WatchedKeys copy = new(cluster, who, Durability, _scope, Encoding.UTF8.GetString(_name), _withValues);
        for (int slot = 0; slot < _places.Length; slot++)
        {
            if (_places[slot]?.Safe is { } safe)
            {
                copy._places[slot]!.Start(safe);
            }
        }

        return copy;
    }

    /// <summary>The node takes the request: where it names no point, the watch begins at what the node has.</summary>
    public void Starts(int slot, ChangePoint applied)
    {
        if (_places[slot] is { Safe: null } place)
        {
            place.Start(applied);
        }
    }

    // ---- What is told

    public void Begun()
    {
        Require(!HasBegun, Rule, "it is said to have begun twice");
        HasBegun = true;
    }

    public void Change(int slot, ChangePoint point, in WatchedChange said)
    {
        Require(HasBegun, Rule, $"{GroupChanges.Text(point)} came before it has begun");
        Place place = PlaceOf(slot, point);
        ToldChange? told = place.Changes.At(point);
        Require(told is not null, Rule, $"nobody has applied {GroupChanges.Text(point)}");
        Require(Matches(told!), Rule, $"{told} does not concern it");
        PassTo(place, point, isIncluded: false);
        string? value = said.Value.IsEmpty && told!.Value is null ? null : Encoding.UTF8.GetString(said.Value);
        bool hasValue = told!.Kind == ChangeKind.Written && told.Value is not null;
        bool isLeftOut = (said.Flags & WatchedChangeFlags.ValueLeftOut) != 0;
        Require(
            Encoding.UTF8.GetString(said.Key) == told.Key
                && (int)said.Kind == (int)told.Kind + 1
                && said.Revision == told.Revision
                && said.Transaction == told.Transaction
                && ((said.Flags & WatchedChangeFlags.NullValue) != 0)
                    == (told is { Kind: ChangeKind.Written, Value: null })
                && ((said.Flags & WatchedChangeFlags.PreviousKept) != 0) == told.IsPreviousKept
                && (isLeftOut ? hasValue && !_withValues && value == string.Empty : value == told.Value),
            Rule,
            $"{told} is told as {said.Kind} of {Encoding.UTF8.GetString(said.Key)} at revision {said.Revision}, "
                + $"{said.Flags}, transaction {said.Transaction}, \"{value}\"");
        place.Seen = point;
        Told++;
        if (told.Transaction != 0)
        {
            place.Open.Add(told);
        }
        else
        {
            place.Safe = point;
        }
    }

    public void Progress(int slot, ChangePoint point)
    {
        if (!HasBegun || _places[slot] is not { } place)
        {
            return;
        }

        if (point < place.Seen)
        {
            // The node is not there yet.
            Require(
                place.Seen == place.Started,
                Rule,
                $"progress {GroupChanges.Text(point)} after {GroupChanges.Text(place.Seen)}");
            return;
        }

        PlaceOf(slot, point);
        PassTo(place, point, isIncluded: true);
        place.Seen = point;
        place.Safe = point;
    }

    /// <summary>Changes up to a point may be missing.</summary>
    public void Compacted(int slot, ChangePoint point)
    {
        if (HasBegun && _places[slot] is { } place)
        {
            Require(
                point > place.Seen && point.Epoch == place.Seen.Epoch,
                Rule,
                $"changes up to {GroupChanges.Text(point)} are said to be gone, and it had those up to "
                    + GroupChanges.Text(place.Seen));
            place.Skip(point);
        }
    }

    public void EpochBegan(int slot, ChangePoint point)
    {
        if (HasBegun && _places[slot] is { } place)
        {
            Require(
                point.Epoch > place.Seen.Epoch && point == ChangePoint.After(point.Group, point.Epoch, 0),
                Rule,
                $"an epoch is said to begin at {GroupChanges.Text(point)}, after {GroupChanges.Text(place.Seen)}");
            place.Skip(point);
        }
    }

    /// <summary>What the shipped client returns of a watch, whose streams nobody sees.</summary>
    public void Hear(in WatchEvent said)
    {
        HasBegun = true;
        switch (said.Kind)
        {
            case WatchEventKind.Progress:
                ForEach(said.Position!, Progress);
                break;
            case WatchEventKind.Compacted or WatchEventKind.EpochBegan:
                HearBreak(in said);
                break;
            default:
                HearChange(in said);
                break;
        }
    }

    /// <summary>It begins here, in all groups.</summary>
    public void StartAt(WatchPosition position) => ForEach(position, (slot, point) => _places[slot]!.Start(point));

    /// <summary>What the nodes have told up to now, by group.</summary>
    public ChangePoint[] Ends() => [.. _places.Select(static place => place?.Changes.Through ?? default)];

    /// <summary>It was told everything up to there.</summary>
    public bool HasReached(ChangePoint[] ends) =>
        !_places.Where((place, slot) => place is not null && place.Seen < ends[slot]).Any();

    /// <summary>
    /// The keys as they are where it is. Keys whose time has passed may lack before that is told: what is told next of
    /// them then is that they have expired.
    /// </summary>
    public void CheckState(IReadOnlyDictionary<string, (long Revision, string? Value)> state)
    {
        HashSet<string> there = [];
        if (_places.Any(static place => place is { Changes.IsWhole: false }))
        {
            return;
        }

        foreach (Place place in _places.OfType<Place>())
        {
            IReadOnlyList<ToldChange> all = place.Changes.All;
            int end = place.Changes.FindBehind(place.Seen);
            Dictionary<string, ToldChange> last = [];
            for (int i = 0; i < end; i++)
            {
                if (all[i].Point.Epoch == place.Seen.Epoch && Matches(all[i]))
                {
                    last[all[i].Key] = all[i];
                }
            }

            foreach (ToldChange told in last.Values.Where(static told => told.Kind == ChangeKind.Written))
            {
                there.Add(told.Key);
                ToldChange? next = state.ContainsKey(told.Key)
                    ? null : all.Skip(end).FirstOrDefault(change => change.Key == told.Key);
                Require(
                    state.TryGetValue(told.Key, out (long Revision, string? Value) found)
                        ? found.Revision == told.Revision && (!_withValues || found.Value == told.Value)
                        : next is null or { Kind: ChangeKind.Expired },
                    SdkWatch.StateRule,
                    $"at {GroupChanges.Text(place.Seen)} it has {told.Key} at revision {found.Revision}, and the last "
                        + $"change was {told}, the next one {next}");
            }
        }

        foreach (string key in state.Keys.Where(key => !there.Contains(key)))
        {
            Require(false, SdkWatch.StateRule, $"it has {key}, which is not there");
        }
    }

    /// <summary>Some watch of the stream is told a change: one that does not belong to a transaction ends it.</summary>
    public void Meets(int slot, ChangePoint point)
    {
        if (_places[slot] is { Open.Count: > 0 } place
            && place.Changes.At(point)?.IsTogetherWith(place.Open[0]) != true)
        {
            CheckWhole(place, point);
        }
    }

    /// <summary>It was told what its node had a while ago, by group.</summary>
    public void CheckReached(ChangePoint[] applied)
    {
        for (int slot = 0; slot < applied.Length; slot++)
        {
            if (_places[slot] is { } place)
            {
                Require(
                    HasBegun && place.Seen >= applied[slot],
                    SoonRule,
                    $"it was told up to {GroupChanges.Text(place.Seen)}, and its node had "
                        + GroupChanges.Text(applied[slot]));
            }
        }
    }

    /// <summary>The watch was told everything that the nodes have told.</summary>
    public void CheckEnd(string where)
    {
        foreach (Place? place in _places)
        {
            if (place is not null)
            {
                Require(
                    place.Seen >= place.Changes.Through && place.Open.Count == 0,
                    Rule,
                    $"{where} it ends at {GroupChanges.Text(place.Seen)} of "
                        + GroupChanges.Text(place.Changes.Through));
            }
        }
    }

    private void ForEach(WatchPosition position, Action<int, ChangePoint> act)
    {
        foreach (ChangePoint point in position.Points.ToArray())
        {
            act(_layout.IndexOf(new GroupId(point.Group)), point);
        }
    }

    /// <summary>Changes are gone, or an epoch has begun, in at least one group.</summary>
    private void HearBreak(in WatchEvent said)
    {
        bool isEpoch = said.Kind == WatchEventKind.EpochBegan;
        bool isNews = false;
        ForEach(said.Position!, (slot, point) =>
        {
            Place place = _places[slot]!;
            if (isEpoch ? point.Epoch > place.Seen.Epoch : point > place.Seen)
            {
                isNews = true;
                place.Skip(point);
            }
        });
        Require(isNews, Rule, $"{said.Kind} is said, and nothing is missing");
    }

    private void HearChange(in WatchEvent said)
    {
        ChangePoint point = said.Place;
        Place place = PlaceOf(_layout.IndexOf(new GroupId(point.Group)), point);
        ToldChange? told = place.Changes.At(point);
        Require(told is not null && Matches(told), Rule, $"{GroupChanges.Text(point)} does not concern it: {told}");
        PassTo(place, point, isIncluded: false);
        Require(
            said.Key == told!.Key
                && (int)said.Kind == (int)told.Kind + (int)WatchEventKind.Set
                && said.Revision.Value == told.Revision
                && (told.Kind != ChangeKind.Written || !_withValues || ValueOf(in said) == told.Value),
            Rule,
            $"{told} is told as {said.Kind} of {said.Key} at revision {said.Revision}");
        Told++;
        place.Seen = point;
        if (told.Transaction == 0)
        {
            Require(!said.HasMore, WholeRule, $"more is said to follow on {told}");
            place.Safe = point;
            return;
        }

        place.Open.Add(told);
        if (!said.HasMore)
        {
            CheckWhole(place, point);
        }
    }

    private static string? ValueOf(in WatchEvent said) => said.Value.IsNull ? null : said.Value.AsString();

    private Place PlaceOf(int slot, ChangePoint point)
    {
        Place? place = _places[slot];
        Require(place?.Safe is not null, Rule, $"{GroupChanges.Text(point)} is of a group that it does not know");
        Require(
            point.Epoch == place!.Seen.Epoch,
            Rule,
            $"{GroupChanges.Text(point)} follows on {GroupChanges.Text(place.Seen)}, and no epoch was said to begin");
        return place;
    }

    /// <summary>Nothing that concerns it lies between, and a transaction that ends there was told as a whole.</summary>
    private void PassTo(Place place, ChangePoint point, bool isIncluded)
    {
        IReadOnlyList<ToldChange> all = place.Changes.All;
        Require(point > place.Seen || isIncluded, Rule, $"{GroupChanges.Text(point)} is told again");
        for (int i = place.Changes.FindBehind(place.Seen);
            i < all.Count && (all[i].Point < point || (isIncluded && all[i].Point == point));
            i++)
        {
            Require(!Matches(all[i]), Rule, $"{all[i]} is left out before {GroupChanges.Text(point)}");
        }

        if (place.Open.Count == 0)
        {
            return;
        }

        ToldChange? next = isIncluded ? null : place.Changes.At(point);
        if (next?.IsTogetherWith(place.Open[0]) == true)
        {
            return;
        }

        CheckWhole(place, point);
    }

    /// <summary>The open transaction is over: it was told as a whole.</summary>
    private void CheckWhole(Place place, ChangePoint point)
    {
        ToldChange first = place.Open[0];
        IReadOnlyList<ToldChange> all = place.Changes.All;
        int whole = 0;
        for (int i = place.Changes.FindBehind(place.Safe!.Value);
            i < all.Count && all[i].Point.Index <= first.Point.Index;
            i++)
        {
            whole += all[i].IsTogetherWith(first) && Matches(all[i]) ? 1 : 0;
        }

        Require(
            whole == place.Open.Count,
            WholeRule,
            $"{place.Open.Count} of {whole} changes are told of the transaction of {first}, when "
                + $"{GroupChanges.Text(point)} ends it");
        place.Close();
        Transactions++;
    }

    private bool Matches(ToldChange told)
    {
        ReadOnlySpan<byte> key = Encoding.UTF8.GetBytes(told.Key);
        return _scope switch
        {
            WatchScope.Key => key.SequenceEqual(_name),
            WatchScope.Bucket => KeyRouting.Bucket(key).SequenceEqual(_name),
            _ => key.StartsWith(_name),
        };
    }

    private void Require(bool holds, string rule, string words)
    {
        if (!holds)
        {
            _breaks(rule, $"{_who}: {words}");
        }
    }

    /// <summary>Where the watch is in one group.</summary>
    private sealed class Place(GroupChanges changes)
    {
        public GroupChanges Changes => changes;

        /// <summary>From here on it may be begun elsewhere: not within a transaction. Null: not known yet.</summary>
        public ChangePoint? Safe { get; set; }

        /// <summary>Up to here it was told.</summary>
        public ChangePoint Seen { get; set; }

        /// <summary>Where it began on the current stream.</summary>
        public ChangePoint Started { get; private set; }

        /// <summary>What was told of a transaction that has not ended.</summary>
        public List<ToldChange> Open { get; } = [];

        public void Start(ChangePoint point) => (Safe, Seen, Started) = (point, point, point);

        public void Restart()
        {
            Open.Clear();
            Seen = Safe ?? default;
            Started = Seen;
        }

        public void Skip(ChangePoint point)
        {
            Open.Clear();
            (Seen, Safe) = (point, point);
        }

        public void Close()
        {
            Safe = Open[^1].Point;
            Open.Clear();
        }
    }
}
