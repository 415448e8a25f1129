using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>Loading what a store has. Stateless.</summary>
internal static class StoredState
{
    /// <summary>Loads a group's state.</summary>
    /// <param name="store">The store, which has a state of the group.</param>
    /// <param name="group">The group.</param>
    /// <param name="mark">The stored state's mark.</param>
    /// <param name="limits">Limits of the state.</param>
    /// <param name="progress">Gets the number of keys loaded so far, now and then.</param>
    /// <exception cref="GroupDamagedException">The stored state is damaged.</exception>
    public static StateMachine Load(IStateStore store, GroupId group, in CheckpointMark mark, StateLimits limits,
        Action<long>? progress = null)
    {
        StateLoader loader = new(limits, mark.Summary);
        long keys = 0;
        try
        {
            store.Load(group, record =>
            {
                loader.Add(record.Bytes);
                if ((++keys & 0xFFF) == 0)
                {
                    progress?.Invoke(keys);
                }
            });
            return loader.Finish();
        }
        catch (InvalidDataException error)
        {
            throw new GroupUnusableException(
                $"The stored state of {group.Name} cannot be used: {error.Message}. {StorageException.WayOut}", error);
        }
    }
}
