using System.Buffers.Binary;
using System.Security.Cryptography;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Access;

/// <summary>
/// Gives each user sessions and idempotency keys of its own: the number that the state sees is a hash of the user and
/// the number that the client sent. So nobody gets the outcome of another user's command by sending its number. For one
/// caller; any thread.
/// </summary>
/// <param name="userId">The user.</param>
internal sealed class UserSessions(uint userId)
{
    private const int HashedBytes = 24;

    private Bound? _latest;

    /// <summary>Replaces the session in the bytes of a command that has one.</summary>
    public void Bind(Span<byte> command)
    {
        if (Command.IsNumbered(command))
        {
            Span<byte> session = command[Command.SessionAt(command)..];
            BinaryPrimitives.WriteUInt64LittleEndian(
                session, NumberOf(BinaryPrimitives.ReadUInt64LittleEndian(session)));
        }
    }

    /// <summary>The number that the state sees: of the same sort, a session's or an idempotency key's.</summary>
    public ulong NumberOf(ulong session)
    {
        Bound? latest = Volatile.Read(ref _latest);
        if (latest?.Session != session)
        {
            latest = new Bound(session, Hash(session));
            Volatile.Write(ref _latest, latest);
        }

        return latest.Number;
    }

    private ulong Hash(ulong session)
    {
        Span<byte> hashed = stackalloc byte[HashedBytes];
        "kahuna user\0"u8.CopyTo(hashed);
        BinaryPrimitives.WriteUInt32LittleEndian(hashed[12..], userId);
        BinaryPrimitives.WriteUInt64LittleEndian(hashed[16..], session);
        Span<byte> hash = stackalloc byte[SHA256.HashSizeInBytes];
        SHA256.HashData(hashed, hash);
        ulong number = BinaryPrimitives.ReadUInt64LittleEndian(hash);
        return IdempotencyKey.IsKey(session) ? IdempotencyKey.AsKey(number) : IdempotencyKey.AsSession(number);
    }

    private sealed record Bound(ulong Session, ulong Number);
}
