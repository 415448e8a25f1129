using System.Buffers.Binary;
using System.Runtime.CompilerServices;
using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Locks;

/// <summary>
/// Locks that end by themselves when their holder is gone. Part of a <see cref="KahunaClient"/>; any thread, any number of calls at a time.
/// <para>
/// A lock is granted for a lease, which the handle renews; one queue in the cluster for each lock serves those who wait, first come first served, and survives a change of leader. Each grant has a token that
/// is greater than all before it, and a write that carries it (<see cref="Fence"/>) counts only while the grant lasts. A lease never ends early by the cluster's clock, and the handle says that it is lost
/// before it can end. Names are 1 to 1,024 bytes of UTF-8 and do not begin with <c>__kahuna</c>; a lock and a key of the same name have nothing to do with each other.
/// </para>
/// <para>Failures are those of <see cref="KeyValues.KeyValues"/>. The returned value tasks are pooled: await each once.</para>
/// </summary>
public sealed class Locks
{
    private readonly Acquirer _acquirer;
    private readonly LockCalls _calls;
    private readonly Durability _durability;

    internal Locks(Acquirer acquirer, Durability durability)
    {
        _acquirer = acquirer;
        _calls = acquirer.Calls;
        _durability = durability;
    }

    /// <summary>Gets a lock, waiting in its queue while others have it.</summary>
    /// <param name="resource">Name of the lock.</param>
    /// <param name="lease">For how long the lock is held without a renewal; 1 ms to 1 hour, fractions of a millisecond are rounded up. It should be much longer than a round trip.</param>
    /// <param name="wait">How long to wait for the lock, from the call on; 1 ms to 24 hours. The wait goes on while no node answers, and the call may then take longer, by up to the request timeout. The cluster gives up a place about which it was not asked for 20 s; the call then queues anew.</param>
    /// <param name="options">Level, owner, mode and renewal; null for the defaults.</param>
    /// <param name="ct">Ends the wait; the place in the queue, or the lock if it is granted just then, is given up in the background.</param>
    /// <returns>The lock; dispose it to give it back.</returns>
    /// <exception cref="KahunaException">
    /// With <see cref="KahunaErrorCode.LockBusy"/> the wait ran out, with <see cref="KahunaErrorCode.LockModeDiffers"/> the name is in use as a semaphore, or the calling method, or one that called it, holds
    /// the lock shared and asks for it exclusively, which would wait for itself. For other codes see <see cref="KahunaException.Outcome"/>: a lock that may have been granted is given up in the background, and ends with its lease if that fails, too.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<LockHandle> AcquireAsync(string resource, TimeSpan lease, TimeSpan wait, LockOptions? options = null, CancellationToken ct = default)
    {
        LockWish wish = Wish(resource, lease, options);
        return wish.Mode == LockMode.Exclusive && SharedHold.TokenOf(_calls, in wish) is { } token
            ? ValueTask.FromException<LockHandle>(Failures.WaitsForItself(resource, token))
            : _acquirer.AcquireAsync(wish, wait, options, ct)!;
    }

    /// <inheritdoc cref="AcquireAsync(string, TimeSpan, TimeSpan, LockOptions?, CancellationToken)"/>
    public ValueTask<LockHandle> AcquireAsync(string resource, TimeSpan lease, TimeSpan wait, CancellationToken ct) => AcquireAsync(resource, lease, wait, null, ct);

    /// <summary>Gets a lock if it is free and nobody waits for it.</summary>
    /// <param name="resource">Name of the lock.</param>
    /// <param name="lease">For how long the lock is held without a renewal; 1 ms to 1 hour, fractions of a millisecond are rounded up. It should be much longer than a round trip.</param>
    /// <param name="options">Level, owner, mode and renewal; null for the defaults.</param>
    /// <param name="ct">Ends the wait for the answer; a lock that is granted just then is given up in the background.</param>
    /// <returns>The lock, or null when it is not free.</returns>
    /// <exception cref="KahunaException">With <see cref="KahunaErrorCode.LockModeDiffers"/> the name is in use as a semaphore; for other codes see <see cref="KahunaException.Outcome"/>.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<LockHandle?> TryAcquireAsync(string resource, TimeSpan lease, LockOptions? options = null, CancellationToken ct = default) =>
        _acquirer.AcquireAsync(Wish(resource, lease, options), null, options, ct);

    /// <summary>Renews a lease without a handle, for an owner and token that were kept elsewhere.</summary>
    /// <param name="resource">Name of the lock.</param>
    /// <param name="owner">The owner as it was given to the call that acquired the lock, or as its handle names it.</param>
    /// <param name="token">The token of the grant.</param>
    /// <param name="lease">1 ms to 1 hour, from the moment at which the call is applied; a lease that ends later anyway stays as it is.</param>
    /// <param name="durability">Level of the lock; null for the client's.</param>
    /// <param name="ct">Ends the wait; the lease may still be renewed.</param>
    /// <returns>For how long the lock is surely held, by this machine's clock and from now on; null when this owner and token do not hold it.</returns>
    /// <exception cref="KahunaException">An empty or too long owner, a token below 1, a lease outside of its limits (<see cref="KahunaErrorCode.InvalidArgument"/>), or the call failed: see <see cref="KahunaException.Outcome"/>.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<TimeSpan?> ExtendAsync(string resource, string owner, long token, TimeSpan lease, Durability? durability = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(resource);
        ArgumentNullException.ThrowIfNull(owner);
        long sent = _calls.Clock.Now;
        LockReply reply = await _calls.ExtendAsync(resource, LevelOf(durability), (LockClaim.Encode(owner, "owner"), token), lease, ct).ConfigureAwait(_calls.CapturesContext);
        if (reply.Status != OutcomeStatus.Applied)
        {
            return null;
        }

        TimeSpan left = _calls.Clock.Span(LockHandle.UsableUntil(_calls.Clock, sent, lease) - _calls.Clock.Now);
        return left > TimeSpan.Zero ? left : TimeSpan.Zero;
    }

    /// <summary>Gives a lock, or a place in its queue, back without a handle. Whoever is first in the queue then has it.</summary>
    /// <param name="resource">Name of the lock.</param>
    /// <param name="owner">The owner as it was given to the call that acquired the lock, or as its handle names it.</param>
    /// <param name="token">The token of the grant.</param>
    /// <param name="durability">Level of the lock; null for the client's.</param>
    /// <param name="ct">Ends the wait; the lock may still be given back.</param>
    /// <returns>True when it was held or waited for; false when this owner and token did neither, so that nothing was changed.</returns>
    /// <exception cref="KahunaException">An empty or too long owner, a token below 1 (<see cref="KahunaErrorCode.InvalidArgument"/>), or the call failed: see <see cref="KahunaException.Outcome"/>.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<bool> ReleaseAsync(string resource, string owner, long token, Durability? durability = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(resource);
        ArgumentNullException.ThrowIfNull(owner);
        byte[] name = LockClaim.Encode(owner, "owner");
        using NamedLeases.Parting parting = _calls.Named.GiveBack((resource, durability ?? _durability, owner), token);
        return (await _calls.ReleaseAsync(resource, LevelOf(durability), (name, token), onlyPlace: false, ct).ConfigureAwait(_calls.CapturesContext)).Status == OutcomeStatus.Applied;
    }

    /// <summary>Tells who holds a lock or permits of a semaphore, and how many wait.</summary>
    /// <param name="resource">Its name.</param>
    /// <param name="durability">Its level; null for the client's.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>The lock as it is; null when nobody holds it.</returns>
    /// <exception cref="KahunaException">The read could not be answered; it may be repeated at will.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<LockDescription?> GetAsync(string resource, Durability? durability = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(resource);
        LockReply reply = await _calls.GetAsync(resource, LevelOf(durability), ct).ConfigureAwait(_calls.CapturesContext);
        return reply.Status == OutcomeStatus.Found ? LockDescription.Read(resource, reply.Value.Span, out _) : null;
    }

    /// <summary>Every lock and semaphore that is held and whose name begins with a prefix, page by page, in no particular order. What is held all the time while the list is read is in it exactly once.</summary>
    /// <param name="prefix">The beginning of the names; empty for all.</param>
    /// <param name="durability">Their level; null for the client's.</param>
    /// <param name="ct">Ends the list.</param>
    /// <exception cref="KahunaException">A page could not be read.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async IAsyncEnumerable<LockDescription> ListAsync(string prefix = "", Durability? durability = null, [EnumeratorCancellation] CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(prefix);
        int partitions = await _calls.PartitionsAsync(ct).ConfigureAwait(_calls.CapturesContext);
        for (int partition = 0; partition < partitions; partition++)
        {
            long cursor = 0;
            do
            {
                LockReply page = await _calls.ListAsync(prefix, LevelOf(durability), (partition, cursor), ct).ConfigureAwait(_calls.CapturesContext);
                foreach (LockDescription held in ReadPage(page.Value))
                {
                    yield return held;
                }

                cursor = page.Number;
            }
            while (cursor != 0);
        }
    }

    private static List<LockDescription> ReadPage(ReadOnlyMemory<byte> page)
    {
        List<LockDescription> locks = [];
        ReadOnlySpan<byte> rest = page.Span;
        while (rest.Length > sizeof(ushort))
        {
            int length = BinaryPrimitives.ReadUInt16LittleEndian(rest);
            rest = rest[sizeof(ushort)..];
            if (rest.Length < length)
            {
                break;
            }

            locks.Add(LockDescription.Read(Encoding.UTF8.GetString(rest[..length]), rest[length..], out rest));
        }

        return locks;
    }

    private LockWish Wish(string resource, TimeSpan lease, LockOptions? options)
    {
        ArgumentNullException.ThrowIfNull(resource);
        LockWish wish = new(resource, LevelOf(options?.Durability), lease, options?.Mode ?? LockMode.Exclusive);
        return wish.Mode == LockMode.Shared ? wish with { Hold = SharedHold.Begin(_calls, in wish) } : wish;
    }

    private CommandDurability LevelOf(Durability? durability) => WireLevels.Of(durability ?? _durability);
}
