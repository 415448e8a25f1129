using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Server.State.Locks;

namespace Kahuna.Server.State;

/// <summary>The one place where a read finds who answers it. Stateless; for the owner of the state.</summary>
internal static class StateReads
{
    /// <summary>Answers one read and appends its encoded outcome. Of keys: <see cref="KeyReader.Read"/>. False when the answer may be held back, because there is nothing to say yet.</summary>
    public static bool Read(KeyStore store, StateMachine state, scoped in Command command, long nowMs, ByteBuffer outcome, KnownHash known)
    {
        if (LockCheck.IsLock(command.Kind))
        {
            return LockReader.Read(store, state.Locks, in command, nowMs, outcome);
        }

        switch (command.Kind)
        {
            case CommandKind.SequenceGet:
                state.Sequences.Get(command.Key, outcome);
                break;
            case CommandKind.SequenceList:
                state.Sequences.List(command.Key, command.AtRevision, outcome);
                break;
            default:
                KeyReader.Read(store, in command, state.TimeMs, nowMs, outcome, known);
                break;
        }

        return true;
    }
}
