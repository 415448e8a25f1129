namespace Kahuna.Tests.Benchmark;

/// <summary>A call that a <see cref="FakeTarget"/> answers.</summary>
internal enum FakeCall
{
    Get,
    Set,

    /// <summary>The next value of a sequence.</summary>
    Sequence,

    /// <summary>Acquire without waiting.</summary>
    Lock,

    /// <summary>Acquire, waiting.</summary>
    Handover,

    /// <summary>Run a script.</summary>
    Script,

    /// <summary>A batch of sets.</summary>
    Batch,

    /// <summary>A transaction of one request.</summary>
    Transaction,

    /// <summary>A transaction of several requests.</summary>
    Interactive,
}
