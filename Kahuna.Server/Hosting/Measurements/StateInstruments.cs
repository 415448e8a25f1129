using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>The metrics of the data: keys, sessions, locks, sequences, transactions. Stateless.</summary>
internal static class StateInstruments
{
    /// <summary>Adds them.</summary>
    public static void Add(NodeMeter meter, NodeFigures node, GroupLabels groups)
    {
        void Gauge(string name, string text, string unit, Func<PartitionMetrics, long> read) => meter.Gauge(
            new MetricName(name, text, unit), groups.Count, () => groups.Each(index => read(Of(node, index))));
        void Counter(string name, string text, string unit, Func<PartitionMetrics, long> read) => meter.Counter(
            new MetricName(name, text, unit), groups.Count, () => groups.Each(index => read(Of(node, index))));

        Gauge("kahuna.keys", "Keys that exist.", "{key}", static group => group.Keys);
        Counter(
            "kahuna.keys.evicted", "Ephemeral keys that went for want of room.", "{key}",
            static group => group.Evicted);
        Gauge("kahuna.sequences", "Sequences that exist.", "{sequence}", static group => group.Sequences);
        Gauge("kahuna.sessions", "Sessions that are remembered.", "{session}", static group => group.Sessions.Count);
        Gauge("kahuna.sessions.size", "Memory of the sessions.", "By", static group => group.Sessions.Bytes);
        Counter(
            "kahuna.sessions.repeats", "Repeated commands that were answered from memory.", "{command}",
            static group => group.Sessions.Repeats);
        Counter(
            "kahuna.sessions.refusals", "Commands that found no room for their session.", "{command}",
            static group => group.Sessions.Refusals);
        Counter(
            "kahuna.sessions.forgotten", "Sessions that were forgotten.", "{session}",
            static group => group.Sessions.Forgotten);
        Gauge("kahuna.locks.held", "Claims that hold a lock.", "{claim}", static group => group.Locks.Held);
        Gauge("kahuna.locks.waiting", "Claims that wait for a lock.", "{claim}", static group => group.Locks.Waiting);
        Counter(
            "kahuna.locks.expired", "Leases that ended without a release.", "{lease}",
            static group => group.Locks.Expired);
        Gauge(
            "kahuna.locks.polls", "Long polls on locks that wait for news.", "{poll}",
            static group => group.Requests.LongPolls);
        Gauge(
            "kahuna.transactions.prepared", "Prepared parts of transactions over several partitions.", "{part}",
            static group => group.Prepared.Parts);
        Gauge(
            "kahuna.transactions.prepared.keys", "Keys that prepared parts hold.", "{key}",
            static group => group.Prepared.Keys);
        Gauge(
            "kahuna.transactions.undecided", "Transactions whose outcome this partition is to decide.",
            "{transaction}", static group => group.Prepared.Undecided);
        Gauge(
            "kahuna.transactions.decided", "Decisions that are remembered.", "{transaction}",
            static group => group.Prepared.Decided);
        Gauge(
            "kahuna.transactions.holding", "Pessimistic transactions that hold a key or wait for one.",
            "{transaction}", static group => group.Holds.Transactions);
        Gauge(
            "kahuna.transactions.holding.keys", "Keys that they hold, each as often as it is held.", "{key}",
            static group => group.Holds.Keys);
        Gauge(
            "kahuna.transactions.waiting", "Requests of transactions that wait for a key.", "{request}",
            static group => group.Holds.Waiting);
    }

    private static PartitionMetrics Of(NodeFigures node, int index) => node.Loops.Group(index).Metrics;
}
