using System.Text;
using BenchmarkDotNet.Attributes;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Benchmark.Micro;

/// <summary>
/// What a lock costs where every node pays for it: acquire and release, free and with others who wait, against two sets
/// of 64 bytes. Run by BenchmarkDotNet.
/// </summary>
[MemoryDiagnoser]
public class LockBenchmark
{
    private const int Commands = 8192;
    private const int Names = 1024;

    private readonly byte[][] _names =
        [.. Enumerable.Range(0, Names).Select(i => Encoding.UTF8.GetBytes($"bench/{i:d8}"))];
    private readonly byte[][] _owners = [.. Enumerable.Range(0, Names).Select(i => Encoding.UTF8.GetBytes($"{i:x16}"))];
    private readonly byte[][] _claims = new byte[Names][];
    private readonly byte[] _value = new byte[64];
    private readonly Queue<(int Owner, long Token)> _queue = new();
    private readonly ByteBuffer _outcome = ByteBuffer.Rent();
    private StateMachine _state = null!;

    /// <summary>Others who wait for the lock all the time.</summary>
    [Params(0, 1000)]
    public int Waiting { get; set; }

    [GlobalSetup]
    public void Setup()
    {
        _state = new StateMachine(new StateLimits());
        for (int i = 0; i < Names; i++)
        {
            LockBody form = new() { Mode = LockMode.Exclusive, Owner = _owners[i] };
            _claims[i] = new byte[form.EncodedBytes];
            form.Write(_claims[i]);
        }

        _queue.Clear();
        for (int i = 0; i < Waiting; i++)
        {
            _queue.Enqueue((i, Acquire(0, i)));
        }
    }

    [Benchmark(Baseline = true, OperationsPerInvoke = Commands)]
    public void Two_sets()
    {
        for (int i = 0; i < Commands; i++)
        {
            Begin();
            Set(i);
            Set(i + 1);
        }
    }

    [Benchmark(OperationsPerInvoke = Commands)]
    public void Acquire_and_release()
    {
        for (int i = 0; i < Commands; i++)
        {
            Begin();
            int owner = i % Names;
            if (Waiting == 0)
            {
                Release(owner, owner, Acquire(owner, owner));
                continue;
            }

            // Whoever has it goes, the next has it, and it asks again.
            (int first, long token) = _queue.Dequeue();
            Release(0, first, token);
            _queue.Enqueue((first, Acquire(0, first)));
        }
    }

    private void Begin()
    {
        _state.BeginEntry(default, _state.Time);
        _outcome.Length = 0;
    }

    private void Set(int i) =>
        _state.Apply(
            new Command
            {
                Kind = CommandKind.Set,
                Durability = Durability.Persistent,
                Key = _names[i * 7 % Names],
                Value = _value,
            },
            _outcome);

    private long Acquire(int name, int owner)
    {
        int at = _outcome.Length;
        _state.Apply(
            new Command
            {
                Kind = CommandKind.LockAcquire,
                Durability = Durability.Persistent,
                Flags = CommandFlags.Ttl | CommandFlags.Number,
                Key = _names[name],
                Value = _claims[owner],
                TtlMs = 60_000,
                Number = 60_000,
            },
            _outcome);
        Outcome.TryRead(_outcome.Written[at..], out Outcome outcome);
        return outcome.Revision;
    }

    private void Release(int name, int owner, long token) => _state.Apply(
        new Command
        {
            Kind = CommandKind.LockRelease,
            Durability = Durability.Persistent,
            Flags = CommandFlags.IfRevision,
            Key = _names[name],
            Value = _owners[owner],
            ComparedRevision = token,
        },
        _outcome);
}
