namespace Kahuna.Server.Raft;

/// <summary>The parts of a core that a change of role touches. Owned by one core.</summary>
internal readonly record struct RoleParts(Outbox Outbox, Following Following, Leadership Leadership);
