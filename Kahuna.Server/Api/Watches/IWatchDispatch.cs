using Kahuna.Server.Partitions.Changes;

namespace Kahuna.Server.Api.Watches;

/// <summary>Finds the streams that a change concerns. Called by the stream's reader.</summary>
internal interface IWatchDispatch
{
    /// <summary>The stream watches these keys from now on.</summary>
    void Add(Durability durability, WatchScope scope, byte[] name);

    /// <summary>The stream no longer watches these keys.</summary>
    void Remove(Durability durability, WatchScope scope, byte[] name);

    /// <summary>
    /// True: something may concern the stream, and the empty list gets its places. Up to <paramref name="passed"/>
    /// nothing does.
    /// </summary>
    bool TakeNews(int groupIndex, WatchHops hops, out ChangeCursor passed);
}
