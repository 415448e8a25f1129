namespace Kahuna.Benchmark.Workloads;

/// <summary>How a workload uses the keys of the key space.</summary>
internal enum KeyUse
{
    /// <summary>Not as keys of values.</summary>
    None,

    /// <summary>They are only written.</summary>
    Written,

    /// <summary>They are read, and so are written before the load.</summary>
    Read,
}
