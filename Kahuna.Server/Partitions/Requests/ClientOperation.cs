using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// One checked operation of a <see cref="ClientBatch"/>: where its command lies in the batch's buffer, and how to
/// answer it.
/// </summary>
/// <param name="Offset">Offset of the command.</param>
/// <param name="Length">Length of the command.</param>
/// <param name="Number">The request's number on its stream.</param>
/// <param name="WaitMs">How long it may wait before it is proposed; 0: no limit.</param>
/// <param name="Slot">Slot of its key's group (<see cref="GroupLayout"/>).</param>
/// <param name="IsRead">It changes nothing.</param>
internal readonly record struct ClientOperation(int Offset, int Length, uint Number, uint WaitMs, ushort Slot,
    bool IsRead);
