using System.Globalization;
using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Client.Results;
using Kahuna.Client.Wire.Commands;

namespace Kahuna.Client.Locks;

/// <summary>Who wants which lock, and how: what every operation on it begins with. A value; the bytes behind it do not change.</summary>
internal readonly struct LockClaim
{
    private readonly int _ownerBytes;

    private LockClaim(string resource, CommandDurability durability, byte[] form, int ownerBytes)
    {
        Resource = resource;
        Durability = durability;
        Form = form;
        _ownerBytes = ownerBytes;
    }

    public string Resource { get; }

    public CommandDurability Durability { get; }

    /// <summary>The lease that is asked for.</summary>
    public TimeSpan Lease { get; init; }

    /// <summary>The owner was named by the caller, who may have other handles under that name.</summary>
    public bool IsNamed { get; private init; }

    /// <summary>With <see cref="IsNamed"/>: this call among those of the same owner for the same lock.</summary>
    public SharedClaims.Call? Sharing { get; init; }

    /// <summary>With <see cref="IsNamed"/>: the call as the leases of its owner know it.</summary>
    public NamedLeases.Ask? Ask { get; init; }

    /// <summary>Where the caller's flow remembers a shared claim; null for others.</summary>
    public SharedHold? Hold { get; private init; }

    /// <summary>A <see cref="LockForm"/>.</summary>
    public ReadOnlyMemory<byte> Form { get; }

    public ReadOnlyMemory<byte> Owner => Form.Slice(LockForm.HeaderBytes, _ownerBytes);

    /// <summary>What all calls of this owner for this lock have in common.</summary>
    public (string Resource, Durability Durability, string Owner) Key => (Resource, (Durability)(byte)Durability, OwnerText);

    public string OwnerText => Encoding.UTF8.GetString(Owner.Span);

    /// <summary>Puts a claim together.</summary>
    /// <exception cref="KahunaException">The server would refuse it.</exception>
    public static LockClaim Of(in LockWish wish, LockOptions options, OwnerNames owners)
    {
        Span<byte> made = stackalloc byte[OwnerNames.Bytes];
        scoped LockForm form = new() { Mode = WireLevels.Of(wish.Mode), Permits = wish.Permits };
        form.Note = wish.Note is { } note ? note.Span : options.Note is null ? default : Encode(options.Note, "note");
        if (options.ReentrantOwner is null)
        {
            owners.Write(made);
            form.Owner = made;
        }
        else
        {
            form.Owner = Encode(options.ReentrantOwner, "owner");
        }

        string? sentence = LockCheck.FormRefusal(in form)
            ?? (options.RenewFor <= TimeSpan.Zero ? string.Create(CultureInfo.InvariantCulture, $"RenewFor is {options.RenewFor}; it must be longer than 0") : null);
        if (sentence is not null)
        {
            throw Failures.BadArgument(sentence);
        }

        byte[] bytes = new byte[form.EncodedBytes];
        form.Write(bytes);
        return new LockClaim(wish.Resource, wish.Durability, bytes, form.Owner.Length) { Lease = wish.Lease, IsNamed = options.ReentrantOwner is not null, Hold = wish.Hold };
    }

    /// <summary>A text that the caller has given.</summary>
    /// <exception cref="KahunaException">It has no UTF-8.</exception>
    public static byte[] Encode(string text, string field)
    {
        try
        {
            return Utf8Text.Strict.GetBytes(text);
        }
        catch (EncoderFallbackException)
        {
            throw Failures.NoUtf8(field);
        }
    }
}
