namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// Turns random numbers into requests: which operation, which key, which payload. The same numbers give the same requests. Immutable; any thread.
/// </summary>
internal sealed class RequestPlan
{
    /// <summary>The sequence that the workload of this name takes values from.</summary>
    public const string SequenceName = "bench:seq:0";

    /// <summary>The lock that the workload of hand-overs is about.</summary>
    public const string LockName = "bench:lock:0";

    private readonly KeySpace _keys;
    private readonly PayloadPool _payloads;

    /// <summary>Share of reads in percent: 0 and 100 are the pure workloads.</summary>
    private readonly int _readPct;
    private readonly WorkloadKind _workload;

    public RequestPlan(WorkloadKind workload, KeySpace keys, PayloadPool payloads, int readPct)
    {
        _keys = keys;
        _payloads = payloads;
        _workload = workload;
        _readPct = workload switch
        {
            WorkloadKind.Get => 100,
            WorkloadKind.Set => 0,
            _ => readPct,
        };
        Rows = workload switch
        {
            WorkloadKind.Get => [Operation.Get],
            WorkloadKind.Set => [Operation.Set],
            WorkloadKind.Sequence => [Operation.Sequence],
            WorkloadKind.Lock => [Operation.Lock],
            WorkloadKind.Handover => [Operation.Handover],
            _ => [Operation.Get, Operation.Set],
        };
    }

    /// <summary>The operations that a report of this plan has rows for.</summary>
    public IReadOnlyList<Operation> Rows { get; }

    public KeySpace Keys => _keys;

    /// <summary>Draws the next request. Every request takes two numbers, whatever it becomes, so that sequences stay aligned.</summary>
    public Operation Next(ref SplitMix random, out string key, out ReadOnlyMemory<byte> payload)
    {
        ulong choice = random.Next();
        key = _keys[SplitMix.Below(choice, _keys.Count)];
        payload = _payloads.Choose(random.Next());
        switch (_workload)
        {
            case WorkloadKind.Sequence:
                key = SequenceName;
                return Operation.Sequence;
            case WorkloadKind.Handover:
                key = LockName;
                return Operation.Handover;
            case WorkloadKind.Lock:
                return Operation.Lock;
        }

        // The key used the upper half of the number; the lower half decides between read and write.
        bool isRead = (choice & uint.MaxValue) * 100 >> 32 < (ulong)_readPct;
        return isRead ? Operation.Get : Operation.Set;
    }

    /// <summary>The payload that seeding gives to the key <paramref name="number"/>.</summary>
    public ReadOnlyMemory<byte> SeedPayload(int number) => _payloads.Choose((ulong)number * 8191);
}
