using System.Collections.Concurrent;
using System.Globalization;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Access;

/// <summary>
/// What users with a quota have used on this node (docs/adr/0045-quotas-per-user.md). Owned by the node's
/// <see cref="AccessState"/>; any thread.
/// </summary>
/// <param name="time">The clock by which operations per second are counted.</param>
internal sealed class UserQuotas(TimeProvider time)
{
    /// <summary>One for each user that had a quota of operations since this node started: as many as users.</summary>
    private readonly ConcurrentDictionary<uint, OperationMeter> _meters = [];

    /// <summary>What an account uses, over all partitions, as far as this node has applied it. Set once.</summary>
    public Func<ushort, UserUsage> Usage { get; set; } = static _ => default;

    /// <summary>A time in ticks of the clock.</summary>
    public long Now => time.GetTimestamp();

    /// <summary>For how long a sum over the partitions is relied on, in ticks: a millisecond.</summary>
    public long SumTicks { get; } = Math.Max(1, time.TimestampFrequency / 1_000);

    /// <summary>
    /// The account that a user's writes are charged to: its number. 0, for nobody, when it does not fit into 16 bits.
    /// Two users never have the same one, because numbers are never given twice.
    /// </summary>
    public static ushort AccountOf(UserRecord user) => user.Id <= ushort.MaxValue ? (ushort)user.Id : (ushort)0;

    /// <summary>What a user uses.</summary>
    public UserUsage UsageOf(UserRecord user) => UsageOf(AccountOf(user));

    /// <summary>What an account uses; nothing for 0.</summary>
    public UserUsage UsageOf(ushort account) => account == 0 ? default : Usage(account);

    /// <summary>
    /// What a user may use up from now on. While its quota of operations stays the same, all that it has open counts on
    /// the same meter; another quota begins with a full bucket.
    /// </summary>
    public UserAllowance AllowanceOf(UserRecord user) => new(this, user, MeterOf(user.Id, user.Quota));

    /// <summary>Forgets users that are gone.</summary>
    public void Forget(AccessBook book)
    {
        foreach (uint id in _meters.Keys)
        {
            if (book.FindUser(id) is not { Quota.OperationsPerSecond: > 0 })
            {
                _meters.TryRemove(id, out _);
            }
        }
    }

    private OperationMeter? MeterOf(uint id, UserQuota quota) => quota.OperationsPerSecond == 0
        ? null
        : _meters.AddOrUpdate(
            id,
            static (_, made) => new OperationMeter(made.Time, made.PerSecond),
            static (_, known, made) =>
                known.PerSecond == made.PerSecond ? known : new OperationMeter(made.Time, made.PerSecond),
            (Time: time, PerSecond: quota.OperationsPerSecond));
}

/// <summary>
/// What a user may use up, by one version of the records. Any thread. Allocates only when it refuses.
/// </summary>
/// <param name="quotas">What the user uses.</param>
/// <param name="user">The user.</param>
/// <param name="meter">Counts its operations; null: they have no limit.</param>
internal sealed class UserAllowance(UserQuotas quotas, UserRecord user, OperationMeter? meter)
{
    private string? _tooFast;
    private string? _reached;
    private long _summedUntil = long.MinValue;

    /// <summary>Whose writes these are; 0: nobody's, as far as quotas go.</summary>
    public ushort Account { get; } = UserQuotas.AccountOf(user);

    /// <summary>
    /// Why a command would exceed the user's operations per second; null: it does not, and is counted. A list counts as
    /// its items. What ends a transaction is neither counted nor refused, because other callers wait for it.
    /// </summary>
    /// <param name="command">The command, which may go on otherwise.</param>
    /// <param name="status">The status of the refusal: the one of all rates, so that clients try again.</param>
    public string? RateRefusal(scoped in Command command, out OutcomeStatus status)
    {
        status = default;
        if (meter is null || EndsTransaction(command.Kind))
        {
            return null;
        }

        if (meter.TryTake(OperationsOf(in command)))
        {
            return null;
        }

        // Made once, so that a client that ignores it costs little.
        status = OutcomeStatus.Busy;
        return _tooFast ??= string.Create(
            CultureInfo.InvariantCulture,
            $"The user exceeds its quota of {meter.PerSecond:N0} operations per second at this node; nothing was done. "
                + $"Try again in a second.");
    }

    /// <summary>
    /// Why a command may not go on because the user has used up its keys or bytes; null: it may. Refused is what may
    /// add some, by the usage that this node has applied; what is on its way is not counted yet.
    /// </summary>
    /// <param name="command">The command, which may go on otherwise.</param>
    /// <param name="status">The status of the refusal.</param>
    public string? StorageRefusal(scoped in Command command, out OutcomeStatus status)
    {
        string? refusal = user.Quota.BoundsStorage && !command.IsRead ? ReachedNow() : null;
        refusal = refusal is not null && Adds(in command) ? refusal : null;
        status = refusal is null ? default : OutcomeStatus.QuotaExceeded;
        return refusal;
    }

    /// <summary>Why nothing may be added now; null: something may.</summary>
    private string? ReachedNow()
    {
        // Summed up once a millisecond at most, however much is sent: as late as what is on its way makes it anyway.
        long now = quotas.Now;
        if (now >= Volatile.Read(ref _summedUntil))
        {
            UserUsage usage = quotas.UsageOf(Account);
            Volatile.Write(
                ref _reached,
                Reached(usage.Keys, user.Quota.Keys, "keys") ?? Reached(usage.Bytes, user.Quota.Bytes, "bytes"));
            Volatile.Write(ref _summedUntil, now + quotas.SumTicks);
        }

        return Volatile.Read(ref _reached);
    }

    private static string? Reached(long used, long limit, string what) =>
        limit == 0 || used < limit
            ? null
            : string.Create(
                CultureInfo.InvariantCulture,
                $"The user has reached its quota of {limit:N0} {what}: it has {used:N0}. Nothing was changed; delete "
                    + $"keys, or ask an administrator for more.");

    private static bool EndsTransaction(CommandKind kind) => kind is CommandKind.TransactionDecide
        or CommandKind.TransactionFinish
        or CommandKind.TransactionForget
        or CommandKind.TransactionRelease;

    private static int OperationsOf(scoped in Command command)
    {
        if (!CommandKinds.Has(command.Kind, CommandTraits.HasItems))
        {
            return 1;
        }

        int count = 0;
        ReadOnlySpan<byte> items = CommandList.ItemsOf(in command);
        while (CommandList.TryTakeBytes(ref items, out _))
        {
            count++;
        }

        return Math.Max(1, count);
    }

    /// <summary>True for what may add keys or bytes. What a script does is known only when it runs.</summary>
    private static bool Adds(scoped in Command command)
    {
        if (AddsToKey(command.Kind) || command.Kind == CommandKind.Script)
        {
            return true;
        }

        if (command.Kind is not (CommandKind.Transaction or CommandKind.TransactionPrepare))
        {
            return false;
        }

        ReadOnlySpan<byte> items = CommandList.ItemsOf(in command);
        while (CommandList.TryTakeBytes(ref items, out ReadOnlySpan<byte> item))
        {
            if (!item.IsEmpty && AddsToKey((CommandKind)item[0]))
            {
                return true;
            }
        }

        return false;
    }

    private static bool AddsToKey(CommandKind kind) =>
        CommandKinds.WritesKey(kind) && !CommandKinds.Has(kind, CommandTraits.FreesMemory);
}

/// <summary>
/// A token bucket for the operations of one user at one node, with room for those of one second: the generic cell rate
/// algorithm, whose whole state is the time at which the bucket is full again. Any thread; allocates nothing.
/// </summary>
/// <param name="time">The clock.</param>
/// <param name="perSecond">What the bucket holds and what flows in, from 1 on.</param>
internal sealed class OperationMeter(TimeProvider time, int perSecond)
{
    private long _fullAt = time.GetTimestamp();

    /// <summary>What the bucket holds and what flows in.</summary>
    public int PerSecond => perSecond;

    /// <summary>
    /// Takes operations out of the bucket; false when it is empty. More than are in it are taken as a debt, so that a
    /// list longer than the bucket passes, and delays what comes after it.
    /// </summary>
    /// <param name="count">From 1 on.</param>
    public bool TryTake(int count)
    {
        long second = time.TimestampFrequency;
        double each = (double)second / perSecond;
        while (true)
        {
            long now = time.GetTimestamp();
            long before = Volatile.Read(ref _fullAt);
            long empty = Math.Max(before, now);
            if (empty - now + each > second)
            {
                return false;
            }

            // Rounded down, so that the operations of a second fit the bucket whole.
            long after = empty + Math.Max(1, (long)(count * each));
            if (Interlocked.CompareExchange(ref _fullAt, after, before) == before)
            {
                return true;
            }
        }
    }
}
