namespace Kahuna.Wire.Commands;

/// <summary>What becomes of a transaction over several partitions. Values are part of the log format.</summary>
internal enum TransactionDecision : byte
{
    /// <summary>Its parts are prepared, and nothing is decided.</summary>
    Pending = 0,

    /// <summary>The first list of each part is carried out.</summary>
    Then = 1,

    /// <summary>The second list of each part is carried out.</summary>
    Else = 2,

    /// <summary>Nothing is carried out.</summary>
    Abort = 3,
}
