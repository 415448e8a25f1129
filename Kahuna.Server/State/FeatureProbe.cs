using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State;

/// <summary>
/// What <see cref="FeatureLevels.Test"/> switches on, so that tests see whether gates hold: a row counts the commands
/// that are applied, and <see cref="CommandKind.FeatureProbe"/> counts it up once more. No release supports that level.
/// Owned by one <see cref="StateMachine"/>; not thread-safe.
/// </summary>
internal sealed class FeatureProbe(KeyStore store) : CommandHandler
{
    /// <inheritdoc/>
    public override void Apply(scoped in Command command, ClusterTime time, KnownHash known, CommandAnswer answer)
    {
        Count();
        answer.Give(new Outcome(OutcomeStatus.Applied));
    }

    /// <summary>A command is applied.</summary>
    public void Count()
    {
        ReadOnlySpan<byte> name = SystemRowKind.FeatureProbe.ToName();
        Span<byte> value = stackalloc byte[sizeof(ulong)];
        Row row = store.System.Find(name);
        if (!row.IsNone)
        {
            ReadOnlySpan<byte> counted = store.Keys.Value(in store.Keys[row]);
            BinaryPrimitives.WriteUInt64LittleEndian(value, BinaryPrimitives.ReadUInt64LittleEndian(counted) + 1);
            store.System.Rewrite(row, value);
            return;
        }

        value[0] = 1;
        store.System.Create(SystemRowKind.FeatureProbe, name, value);
    }
}
