using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.State;

/// <summary>What the state costs: bytes per key, and no allocation once it has its size.</summary>
public sealed class StateFootprintTests
{
    private readonly StateMachine _machine = new(new StateLimits { HistoryPerKey = 4, HistoryBytes = 64 << 10 });
    private readonly ByteBuffer _outcome = ByteBuffer.Rent(64 << 10);
    private readonly byte[] _key = "bucket/key-00000"u8.ToArray();
    private readonly byte[] _value = new byte[100_000];

    [Fact]
    public void Applying_and_reading_allocate_nothing_in_steady_state()
    {
        for (int round = 0; round < 3; round++)
        {
            Round(round);
        }

        int next = 3;
        Assert.Equal(0, AllocatedBytes.LeastOf(() => Round(next++)));
    }

    [Fact]
    public void A_key_costs_little_more_than_its_bytes()
    {
        StateMachine machine = new(new StateLimits());
        const int Keys = 200_000;
        for (int i = 0; i < Keys; i++)
        {
            Name(i);
            Set(machine, 128);
        }

        double perKey = (double)machine.Counts.Bytes / Keys;
        Assert.InRange(perKey, 16 + 128 + 40, 16 + 128 + 72);

        // Overwritten at full history, the state grows by the bound of the history and the rows of its records.
        for (int i = 0; i < Keys; i++)
        {
            Name((int)(i * 7919L % Keys));
            Set(machine, 128);
        }

        Assert.Equal(Keys, machine.Counts.Keys);
        Assert.InRange((double)machine.Counts.Bytes / Keys, perKey, perKey + (2.0 * (8 << 20) / Keys));
    }

    [Fact]
    public void A_deleted_key_frees_its_value()
    {
        StateMachine machine = new(new StateLimits { HistoryPerKey = 0 });
        for (int i = 0; i < 1000; i++)
        {
            Name(i);
            Set(machine, 100_000);
        }

        Assert.InRange(machine.Counts.Bytes, 100_000_000, 120_000_000);
        for (int i = 0; i < 1000; i++)
        {
            Name(i);
            machine.Apply(new Command { Kind = CommandKind.Delete, Key = _key }, null);
        }

        Assert.InRange(machine.Counts.Bytes, 0, 8 << 20);
    }

    private void Round(int round)
    {
        for (int i = 0; i < 2000; i++)
        {
            _outcome.Length = 0;
            _machine.BeginEntry(default, _machine.Time + 1);
            Name(i % 200);
            Command command = new() { Key = _key };
            switch ((i / 200) + (round % 2))
            {
                case 0 or 3 or 7:
                    Set(_machine, 128);
                    break;
                case 1:
                    Set(_machine, 300);
                    break;
                case 2:
                    command.Kind = CommandKind.Delete;
                    command.Flags = CommandFlags.ReturnPrevious;
                    _machine.Apply(command, _outcome);
                    break;
                case 4:
                    command.Kind = CommandKind.Extend;
                    command.Flags = CommandFlags.Ttl;
                    command.TtlMs = 50;
                    _machine.Apply(command, _outcome);
                    break;
                case 5:
                    command.Kind = CommandKind.ExpireSweep;
                    command.Number = 3;
                    _machine.Apply(command, _outcome);
                    break;
                case 6:
                    command.Kind = CommandKind.Increment;
                    command.Flags = CommandFlags.Number;
                    command.Number = 5;
                    _machine.Apply(command, _outcome);
                    break;
                default:
                    command.Kind = CommandKind.Get;
                    command.Flags = (i & 1) == 0 ? CommandFlags.None : CommandFlags.AtRevision;
                    command.AtRevision = 2;
                    _machine.Read(command, _machine.Time, _outcome);
                    break;
            }
        }
    }

    private void Name(int number)
    {
        for (int at = _key.Length - 1; at > _key.Length - 7; at--)
        {
            _key[at] = (byte)('0' + (number % 10));
            number /= 10;
        }
    }

    private void Set(StateMachine machine, int length)
    {
        _outcome.Length = 0;
        machine.Apply(new Command { Kind = CommandKind.Set, Key = _key, Value = _value.AsSpan(0, length) }, _outcome);
    }
}
