using System.Buffers.Binary;
using System.Runtime.CompilerServices;
using System.Text;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Locks;

/// <summary>
/// Distributed locks with leases, queues and fencing tokens. Obtained from <see cref="KahunaClient.Locks"/>; any
/// thread, any number of concurrent calls.
/// <para>
/// A lock is granted for a lease, which its handle renews. Each lock has one queue in the cluster, served in order of
/// arrival, which survives a change of leader. Each grant has a token greater than every earlier one, and a write that
/// carries it (<see cref="Fence"/>) counts only while the grant lasts.
/// </para>
/// <para>
/// By the cluster's clock a lease never ends early, and the handle reports the loss before the lease can end. Names are
/// 1 to 1,024 bytes of UTF-8 and do not begin with <c>__kahuna</c>. A lock and a key of the same name are unrelated.
/// </para>
/// <para>
/// Errors are those of <see cref="KeyValues.KeyValueClient"/>. The returned value tasks are pooled: await each once.
/// </para>
/// </summary>
public sealed class LockClient
{
    private readonly Acquirer _acquirer;
    private readonly LockOperations _calls;
    private readonly Durability _durability;

    internal LockClient(Acquirer acquirer, Durability durability)
    {
        _acquirer = acquirer;
        _calls = acquirer.Calls;
        _durability = durability;
    }

    /// <summary>Acquires a lock and waits in its queue while others hold it.</summary>
    /// <param name="resource">Name of the lock.</param>
    /// <param name="lease">
    /// How long the lock is held without a renewal: 1 ms to 1 hour, rounded up to whole milliseconds. It should be much
    /// longer than a round trip.
    /// </param>
    /// <param name="wait">
    /// How long to wait for the lock, from the call on: 1 ms to 24 hours. While no node answers, the call may take up
    /// to one request timeout longer. If the client cannot reach the cluster for 20 s, it may lose its place and queue
    /// again.
    /// </param>
    /// <param name="options">Durability, owner, mode and renewal; null for the defaults.</param>
    /// <param name="ct">
    /// Ends the wait; the place in the queue, or a lock granted just then, is released in the background.
    /// </param>
    /// <returns>The lock; dispose it to release it.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.LockBusy"/>: the wait ran out. <see cref="KahunaErrorCode.LockModeDiffers"/>: the
    /// name is in use as a semaphore; or the caller, or a method that called it, holds the lock shared and asks for it
    /// exclusively, which would deadlock. For other codes see <see cref="KahunaException.Outcome"/>: a lock that may
    /// have been granted is released in the background, or ends with its lease.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<LockHandle> AcquireAsync(
        string resource, TimeSpan lease, TimeSpan wait, LockOptions? options = null, CancellationToken ct = default)
    {
        LockRequest request = Request(resource, lease, options);
        return request.Mode == LockMode.Exclusive && SharedHold.TokenOf(_calls, in request) is { } token
            ? ValueTask.FromException<LockHandle>(OperationErrors.WaitsForItself(resource, token))
            : _acquirer.AcquireAsync(request, wait, options, ct)!;
    }

    /// <inheritdoc cref="AcquireAsync(string, TimeSpan, TimeSpan, LockOptions?, CancellationToken)"/>
    public ValueTask<LockHandle> AcquireAsync(string resource, TimeSpan lease, TimeSpan wait, CancellationToken ct) =>
        AcquireAsync(resource, lease, wait, null, ct);

    /// <summary>Acquires a lock if it is free and nobody waits for it.</summary>
    /// <param name="resource">Name of the lock.</param>
    /// <param name="lease">
    /// How long the lock is held without a renewal: 1 ms to 1 hour, rounded up to whole milliseconds. It should be much
    /// longer than a round trip.
    /// </param>
    /// <param name="options">Durability, owner, mode and renewal; null for the defaults.</param>
    /// <param name="ct">Ends the wait for the answer; a lock granted just then is released in the background.</param>
    /// <returns>The lock, or null when it is not free.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.LockModeDiffers"/>: the name is in use as a semaphore. For other codes see
    /// <see cref="KahunaException.Outcome"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<LockHandle?> TryAcquireAsync(
        string resource, TimeSpan lease, LockOptions? options = null, CancellationToken ct = default) =>
        _acquirer.AcquireAsync(Request(resource, lease, options), null, options, ct);

    /// <summary>Renews a lease without a handle, by an owner and token that were stored elsewhere.</summary>
    /// <param name="resource">Name of the lock.</param>
    /// <param name="owner">
    /// The owner that was given to the call that acquired the lock, or <see cref="LockHandle.Owner"/>.
    /// </param>
    /// <param name="token">The token of the grant.</param>
    /// <param name="lease">
    /// The new lease, from the moment at which the call is applied: 1 ms to 1 hour. A lease that ends later is not
    /// shortened.
    /// </param>
    /// <param name="durability">Durability of the lock; null for the client's.</param>
    /// <param name="ct">Ends the wait; the lease may still be renewed.</param>
    /// <returns>
    /// How long the lock is certainly held from now on, by this machine's clock; null when this owner and token do not
    /// hold it.
    /// </returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.InvalidArgument"/>: an owner of 0 or more than 256 bytes, a token below 1, or a lease
    /// outside its range. For other codes see <see cref="KahunaException.Outcome"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<TimeSpan?> ExtendAsync(
        string resource,
        string owner,
        FencingToken token,
        TimeSpan lease,
        Durability? durability = null,
        CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(resource);
        ArgumentNullException.ThrowIfNull(owner);
        long sent = _calls.Clock.Now;
        LockReply reply = await _calls.ExtendAsync(
            resource, LevelOf(durability), (OwnerClaim.Encode(owner, "owner"), token), lease, ct)
            .ConfigureAwait(_calls.CapturesContext);
        if (reply.Status != OutcomeStatus.Applied)
        {
            return null;
        }

        TimeSpan left = _calls.Clock.Span(LockHandle.UsableUntil(_calls.Clock, sent, lease) - _calls.Clock.Now);
        return left > TimeSpan.Zero ? left : TimeSpan.Zero;
    }

    /// <summary>
    /// Releases a lock, or a place in its queue, without a handle. The first in the queue then gets the lock.
    /// </summary>
    /// <param name="resource">Name of the lock.</param>
    /// <param name="owner">
    /// The owner that was given to the call that acquired the lock, or <see cref="LockHandle.Owner"/>.
    /// </param>
    /// <param name="token">The token of the grant.</param>
    /// <param name="durability">Durability of the lock; null for the client's.</param>
    /// <param name="ct">Ends the wait; the lock may still be released.</param>
    /// <returns>
    /// True when the lock was held or waited for; false when this owner and token did neither, and nothing changed.
    /// </returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.InvalidArgument"/>: an owner of 0 or more than 256 bytes, or a token below 1. For
    /// other codes see <see cref="KahunaException.Outcome"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<bool> ReleaseAsync(
        string resource,
        string owner,
        FencingToken token,
        Durability? durability = null,
        CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(resource);
        ArgumentNullException.ThrowIfNull(owner);
        byte[] name = OwnerClaim.Encode(owner, "owner");
        using NamedLeases.PendingRelease release = _calls.Named.BeginRelease(
            (resource, durability ?? _durability, owner), token);
        LockReply reply = await _calls.ReleaseAsync(resource, LevelOf(durability), (name, token), onlyPlace: false, ct)
            .ConfigureAwait(_calls.CapturesContext);
        return reply.Status == OutcomeStatus.Applied;
    }

    /// <summary>Reads who holds a lock or a semaphore's permits, and how many wait.</summary>
    /// <param name="resource">Name of the lock or semaphore.</param>
    /// <param name="durability">Its durability; null for the client's.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>The current state of the lock; null when nobody holds it.</returns>
    /// <exception cref="KahunaException">The read could not be answered; it is safe to repeat.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<LockDescription?> GetAsync(
        string resource, Durability? durability = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(resource);
        LockReply reply = await _calls.GetAsync(resource, LevelOf(durability), ct)
            .ConfigureAwait(_calls.CapturesContext);
        return reply.Status == OutcomeStatus.Found ? LockDescription.Read(resource, reply.Value.Span, out _) : null;
    }

    /// <summary>
    /// Lists the held locks and semaphores whose names begin with a prefix, page by page, in no particular order. One
    /// that is held throughout the listing appears exactly once.
    /// </summary>
    /// <param name="prefix">The start of the names; empty for all.</param>
    /// <param name="durability">Their durability; null for the client's.</param>
    /// <param name="ct">Ends the listing.</param>
    /// <exception cref="KahunaException">A page could not be read.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async IAsyncEnumerable<LockDescription> ListAsync(
        string prefix = "", Durability? durability = null, [EnumeratorCancellation] CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(prefix);
        int partitions = await _calls.PartitionsAsync(ct).ConfigureAwait(_calls.CapturesContext);
        for (int partition = 0; partition < partitions; partition++)
        {
            long cursor = 0;
            do
            {
                LockReply page = await _calls.ListAsync(prefix, LevelOf(durability), (partition, cursor), ct)
                    .ConfigureAwait(_calls.CapturesContext);
                foreach (LockDescription held in ReadPage(page.Value))
                {
                    yield return held;
                }

                cursor = page.Cursor;
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

    private LockRequest Request(string resource, TimeSpan lease, LockOptions? options)
    {
        ArgumentNullException.ThrowIfNull(resource);
        LockRequest request = new(resource, LevelOf(options?.Durability), lease, options?.Mode ?? LockMode.Exclusive);
        return request.Mode == LockMode.Shared ? request with { Hold = SharedHold.Begin(_calls, in request) } : request;
    }

    private Durability LevelOf(Durability? durability) => durability ?? _durability;
}
