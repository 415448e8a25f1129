using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.Rows;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// Deletes the keys of a range in steps: one command looks at a bounded number of rows, and says where the next one
/// goes on. Stateless.
/// </summary>
internal static class RangeDelete
{
    /// <summary>Keys that one command deletes: a fraction of a millisecond.</summary>
    public const int KeysPerStep = 250;

    /// <summary>Rows that one command looks at, those of deleted keys included.</summary>
    public const int RowsPerStep = 2_048;

    private const int RowsAtOnce = 32;

    /// <summary>Carries out one step. The outcome's number says how many keys are gone.</summary>
    public static void Apply(KeyStore store, scoped in Command command, ClusterTime time, CommandAnswer answer)
    {
        RangeRequest asked = new(in command);
        Span<byte> from = stackalloc byte[Limits.KeyBytesMax];
        asked.Start.CopyTo(from);
        int length = asked.Start.Length;
        bool isInclusive = !asked.Has(RangeFlags.AfterStart);
        HistoryChoice keep = new(!command.Has(CommandFlags.WithoutHistory), time);
        long limit = Math.Min(asked.Limit, KeysPerStep);
        Span<Row> rows = stackalloc Row[RowsAtOnce];
        int deleted = 0;
        int looked = 0;
        bool hasMore = true;
        while (hasMore && looked < RowsPerStep && deleted < limit)
        {
            int before = deleted;
            int filled = store.Ordered.Ascend(from[..length], isInclusive, rows);
            hasMore = filled == rows.Length;
            foreach (Row row in rows[..filled])
            {
                ReadOnlySpan<byte> key = store.Keys.Key(in store.Keys[row]);
                if (asked.HasEnd && key.SequenceCompareTo(asked.End) >= 0)
                {
                    hasMore = false;
                    break;
                }

                key.CopyTo(from);
                length = key.Length;
                isInclusive = false;
                looked++;
                if (!store.Expire(row, time) && store.Exists(row))
                {
                    store.Delete(row, keep);
                    if (++deleted == limit)
                    {
                        hasMore = true;
                        break;
                    }
                }
            }

            // As before each command, so that many deletes at once do not outrun what forgets. Not among them: it may
            // free rows.
            for (int i = before; i < deleted; i++)
            {
                store.DropOld(time);
            }
        }

        Give(answer, hasMore ? from[..length] : default, deleted);
    }

    private static void Give(CommandAnswer answer, ReadOnlySpan<byte> last, int deleted)
    {
        if (answer.IsWanted)
        {
            ByteBuffer page = ByteBuffer.Rent();
            RangePage.WriteHeader(page, last, deleted);
            answer.Give(new Outcome(OutcomeStatus.Applied, 0, deleted) { HasValue = true, Value = page.Written });
            page.Return();
        }
    }
}
