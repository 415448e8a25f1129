using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// Where a change stands among all changes of a group: the same on every member, also after a restart. Positions of one
/// group ascend in the order in which changes are told. A value.
/// </summary>
/// <param name="Group">The Raft group.</param>
/// <param name="Epoch">Of an ephemeral group: its epoch; none of others.</param>
/// <param name="Index">The log entry whose commands made the change.</param>
/// <param name="N">The number of the change among those of the entry, from 0 on.</param>
internal readonly record struct ChangePosition(GroupId Group, Epoch Epoch, LogIndex Index, int N);
