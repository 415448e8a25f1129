using System.Globalization;
using System.Text;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Locks;

/// <summary>
/// The claim of one owner to one lock, with which every operation on it starts. A value; its bytes do not change.
/// </summary>
internal readonly struct OwnerClaim
{
    private readonly int _ownerBytes;

    private OwnerClaim(string resource, Durability durability, byte[] body, int ownerBytes)
    {
        Resource = resource;
        Durability = durability;
        Body = body;
        _ownerBytes = ownerBytes;
    }

    public string Resource { get; }

    public Durability Durability { get; }

    /// <summary>The requested lease.</summary>
    public TimeSpan Lease { get; init; }

    /// <summary>The caller named the owner and may have other handles under that name.</summary>
    public bool IsNamed { get; private init; }

    /// <summary>With <see cref="IsNamed"/>: this call among those of the same owner for the same lock.</summary>
    public SharedClaims.Call? Sharing { get; init; }

    /// <summary>With <see cref="IsNamed"/>: this call as the named leases know it.</summary>
    public NamedLeases.PendingAcquire? Pending { get; init; }

    /// <summary>Where the caller's flow remembers a shared claim; null for other modes.</summary>
    public SharedHold? Hold { get; private init; }

    /// <summary>The encoded <see cref="LockBody"/>.</summary>
    public ReadOnlyMemory<byte> Body { get; }

    public ReadOnlyMemory<byte> Owner => Body.Slice(LockBody.HeaderBytes, _ownerBytes);

    /// <summary>Identifies all calls of this owner for this lock.</summary>
    public (string Resource, Durability Durability, string Owner) Key =>
        (Resource, Durability, OwnerText);

    public string OwnerText => Encoding.UTF8.GetString(Owner.Span);

    /// <summary>Creates a claim.</summary>
    /// <exception cref="KahunaException">The server would refuse it.</exception>
    public static OwnerClaim Of(in LockRequest request, LockOptions options, OwnerNames owners)
    {
        Span<byte> made = stackalloc byte[OwnerNames.Bytes];
        scoped LockBody body = new() { Mode = request.Mode, Permits = request.Permits };
        body.Note = request.Note is { } note ? note.Span
            : options.Note is null ? default
            : Encode(options.Note, "note");
        if (options.ReentrantOwner is null)
        {
            owners.Write(made);
            body.Owner = made;
        }
        else
        {
            body.Owner = Encode(options.ReentrantOwner, "owner");
        }

        string? sentence = LockCheck.BodyRefusal(in body)
            ?? (options.RenewFor > TimeSpan.Zero || options.RenewFor is null ? null
                : string.Create(
                    CultureInfo.InvariantCulture, $"RenewFor is {options.RenewFor}; it must be longer than 0"));
        if (sentence is not null)
        {
            throw OperationErrors.BadArgument(sentence);
        }

        byte[] bytes = new byte[body.EncodedBytes];
        body.Write(bytes);
        return new OwnerClaim(request.Resource, request.Durability, bytes, body.Owner.Length)
        {
            Lease = request.Lease,
            IsNamed = options.ReentrantOwner is not null,
            Hold = request.Hold,
        };
    }

    /// <summary>Encodes a text of the caller.</summary>
    /// <exception cref="KahunaException">The text cannot be encoded in UTF-8.</exception>
    public static byte[] Encode(string text, string field)
    {
        try
        {
            return Utf8Text.Strict.GetBytes(text);
        }
        catch (EncoderFallbackException)
        {
            throw OperationErrors.NoUtf8(field);
        }
    }
}

/// <summary>Which lock a caller wants, and how. A value.</summary>
/// <param name="Resource">Name of the lock.</param>
/// <param name="Durability">Its durability.</param>
/// <param name="Lease">The requested lease.</param>
/// <param name="Mode">Exclusive, shared, or a permit.</param>
internal readonly record struct LockRequest(
    string Resource, Durability Durability, TimeSpan Lease, LockMode Mode)
{
    /// <summary>Permits of a semaphore; 0 for other modes.</summary>
    public int Permits { get; init; }

    /// <summary>Where the caller's flow remembers the claim; null for modes that are not shared.</summary>
    public SharedHold? Hold { get; init; }

    /// <summary>The note to leave with the lock; null for that of the options.</summary>
    public ReadOnlyMemory<byte>? Note { get; init; }
}
