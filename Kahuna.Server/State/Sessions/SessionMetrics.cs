namespace Kahuna.Server.State.Sessions;

/// <summary>A partition's memory of client sessions. A value.</summary>
/// <param name="Count">Sessions that are remembered.</param>
/// <param name="Bytes">Bytes that they take up.</param>
/// <param name="Repeats">Commands that came again and were answered from memory, since the state began on this
/// node.</param>
/// <param name="Refusals">Commands that were refused for want of room, since then.</param>
/// <param name="Forgotten">Sessions that were forgotten, since then.</param>
internal readonly record struct SessionMetrics(int Count, long Bytes, long Repeats, long Refusals, long Forgotten);
