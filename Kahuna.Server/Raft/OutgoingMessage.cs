namespace Kahuna.Server.Raft;

/// <summary>A message of a <i>Ready</i>, and when it may leave.</summary>
/// <param name="Message">The message. To = the own node: hand it back to Step once the condition holds.</param>
/// <param name="AfterDurable">True: only after everything that this Ready persists, and all before it, is on stable storage.</param>
internal readonly record struct OutgoingMessage(RaftMessage Message, bool AfterDurable);
