using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.Sessions;

/// <summary>Lists what is remembered of clients, for people. Stateless; for the owner of the store.</summary>
internal static class SessionReader
{
    /// <summary>Rows that one page looks at: bounded work on the loop.</summary>
    private const int RowsPerPage = 8192;

    /// <summary>A page of sessions, in the order of their rows, from a row on.</summary>
    /// <param name="store">The tables.</param>
    /// <param name="limits">How long sessions are remembered.</param>
    /// <param name="from">The first row to look at.</param>
    /// <param name="countMax">Sessions after which the page is full.</param>
    /// <param name="now">The present cluster time.</param>
    public static SessionPage List(KeyStore store, StateLimits limits, Row from, int countMax, ClusterTime now)
    {
        SessionRows rows = new(store);
        List<SessionSnapshot> found = [];
        Row row = from < Row.First ? Row.First : from;
        for (int looked = 0;
            row.Value <= store.Keys.Count && looked < RowsPerPage && found.Count < countMax;
            looked++, row = row.Next)
        {
            ref readonly KeyEntry entry = ref store.Keys[row];
            if (entry.IsSession)
            {
                SessionWindow window = new(store.Keys.Writable(in entry));
                ulong id = SystemRowKind.SessionIn(store.Keys.Key(in entry));
                long idleMs = Math.Max(0, now - store.DeadlineOf(in entry));
                found.Add(new SessionSnapshot(id, IdempotencyKey.IsKey(id))
                {
                    IdleMs = idleMs,
                    LeftMs = Math.Max(0, limits.SessionIdleMs - idleMs),
                    Calls = window.High >= window.Low ? (long)(window.High - window.Low) + 1 : 0,
                    Bytes = rows.BytesOf(row) + window.KeptBytes,
                });
            }
        }

        return new SessionPage(found, row.Value <= store.Keys.Count ? row : Row.None);
    }
}

/// <summary>A page of sessions. Immutable.</summary>
/// <param name="Sessions">The sessions.</param>
/// <param name="Next">Where the next page begins; none: there is none.</param>
internal sealed record SessionPage(IReadOnlyList<SessionSnapshot> Sessions, Row Next);

/// <summary>What a group remembers of one client. A value.</summary>
/// <param name="Id">The session.</param>
/// <param name="IsIdempotencyKey">It is of an idempotency key, and not of a client.</param>
internal readonly record struct SessionSnapshot(ulong Id, bool IsIdempotencyKey)
{
    /// <summary>Milliseconds since its last command, to the second.</summary>
    public long IdleMs { get; init; }

    /// <summary>Milliseconds until it is forgotten, if no command comes and there is room for it.</summary>
    public long LeftMs { get; init; }

    /// <summary>Numbers of calls from the first that is not confirmed to the last.</summary>
    public long Calls { get; init; }

    /// <summary>Bytes that it takes up.</summary>
    public long Bytes { get; init; }
}
