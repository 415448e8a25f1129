using System.Text;
using BenchmarkDotNet.Attributes;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Benchmark.Micro;

/// <summary>
/// What "at most once" costs where every node pays for it: applying a set of 64 bytes with a number, against one
/// without. Run by BenchmarkDotNet.
/// </summary>
[MemoryDiagnoser]
public class SessionBenchmark
{
    private const int Commands = 8192;
    private const int Keys = 1024;

    /// <summary>Callers that wait for an answer at a time, and so the outcomes that are remembered.</summary>
    private const int UnderWay = 64;

    private readonly byte[][] _keys =
        [.. Enumerable.Range(0, Keys).Select(i => Encoding.UTF8.GetBytes($"bench/{i:d8}"))];
    private readonly byte[] _value = new byte[64];
    private readonly ByteBuffer _outcome = ByteBuffer.Rent();
    private StateMachine _state = null!;
    private ulong _number;

    /// <summary>Client sessions that take turns.</summary>
    [Params(1, 16)]
    public int Sessions { get; set; }

    [GlobalSetup]
    public void Setup()
    {
        _state = new StateMachine(new StateLimits());
        _number = 0;
        Run(CommandFlags.Session | CommandFlags.Opening, isLeader: true);
    }

    [Benchmark(Baseline = true, OperationsPerInvoke = Commands)]
    public void Leader_without_numbers() => Run(CommandFlags.None, isLeader: true);

    [Benchmark(OperationsPerInvoke = Commands)]
    public void Leader_with_numbers() => Run(CommandFlags.Session, isLeader: true);

    [Benchmark(OperationsPerInvoke = Commands)]
    public void Follower_without_numbers() => Run(CommandFlags.None, isLeader: false);

    [Benchmark(OperationsPerInvoke = Commands)]
    public void Follower_with_numbers() => Run(CommandFlags.Session, isLeader: false);

    private void Run(CommandFlags flags, bool isLeader)
    {
        for (int i = 0; i < Commands; i++)
        {
            if (i % UnderWay == 0)
            {
                _state.BeginEntry(default, _state.Time + 1);
                _outcome.Length = 0;
            }

            // Several clients fill a batch one after the other.
            ulong session = (ulong)(i / 16 % Sessions);
            _number++;
            _state.Apply(new Command
            {
                Kind = CommandKind.Set,
                Durability = Durability.Persistent,
                Flags = flags,
                Key = _keys[(i * 7) % Keys],
                Value = _value,
                SessionId = session,
                Sequence = _number,
                Lag = (ushort)Math.Min(_number - 1, UnderWay - 1),
            }, isLeader ? _outcome : null);
        }
    }
}
