using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Tests.Storage;

/// <summary>
/// Seeded sequences of appends, overwrites, votes, syncs that fail, kills and losses of power, against a dictionary:
/// after each start the log holds everything that was reported, all or nothing of the write that was under way, and
/// nothing else.
/// </summary>
public sealed class LogModelTests
{
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void AnySequenceKeepsWhatWasReported(bool roundsOfTwoWriters)
    {
        int crashes = 0;
        int cuts = 0;
        int unreported = 0;
        for (int seed = 0; seed < 150; seed++)
        {
            Run run = new(seed, roundsOfTwoWriters);
            run.Execute(150);
            crashes += run.Crashes;
            cuts += run.Cuts;
            unreported += run.UnreportedKept;
        }

        // A run in which nothing went wrong proves nothing.
        Assert.True(
            crashes > 500 && cuts > 50 && unreported > 50,
            $"{crashes} crashes, {cuts} cuts, {unreported} unreported writes kept");
    }

    /// <summary>The expected content of the groups.</summary>
    private sealed class Model
    {
        private const int Groups = 3;

        public List<string>[] Entries { get; } = [.. Enumerable.Range(0, Groups).Select(_ => new List<string>())];

        public HardState[] HardStates { get; } = new HardState[Groups];

        public Model Copy()
        {
            Model copy = new();
            for (int i = 0; i < Groups; i++)
            {
                copy.Entries[i].AddRange(Entries[i]);
                copy.HardStates[i] = HardStates[i];
            }

            return copy;
        }

        public bool Equals(LogFixture fixture)
        {
            for (int i = 0; i < Groups; i++)
            {
                GroupId group = new((uint)i + 1);
                RecoveredGroup found = fixture.Log.Recovered(group);
                if (found.HardState != HardStates[i] || found.LastIndex.Value != (ulong)Entries[i].Count
                    || !fixture.Replay(group, 1, found.LastIndex.Value).SequenceEqual(Entries[i]))
                {
                    return false;
                }
            }

            return true;
        }
    }

    private sealed class Run(int seed, bool twoWriters)
    {
        private readonly Random _random = new(seed);
        private readonly LogFixture _fixture = new(segmentBytes: 12 * 1024);
        private ILogWriter _second = null!;
        private RecordingSink _secondSink = new();
        private Model _reported = new();
        private Model _written = new();
        private ulong _term = 1;

        public int Crashes { get; private set; }

        public int Cuts { get; private set; }

        public int UnreportedKept { get; private set; }

        public void Execute(int steps)
        {
            Start();
            for (int i = 0; i < steps; i++)
            {
                switch (_random.Next(12))
                {
                    case < 6:
                        Append();
                        break;
                    case 6:
                        Save();
                        break;
                    case 7 or 8:
                        Commit();
                        break;
                    case 9:
                        CommitAndLose();
                        break;
                    case 10:
                        _fixture.Log.PrepareOnce();
                        Fetch();
                        break;
                    default:
                        _fixture.Log.MarkIdle();
                        break;
                }
            }
        }

        private ILogWriter WriterOf(int group) => twoWriters && group == 2 ? _second : _fixture.Writer;

        private void Append()
        {
            int group = _random.Next(3);
            List<string> entries = _written.Entries[group];
            int first = _random.Next(4) == 0 ? _random.Next(entries.Count + 1) : entries.Count;
            entries.RemoveRange(first, entries.Count - first);
            _term += (ulong)_random.Next(2);
            string[] texts =
            [
                .. Enumerable.Range(0, _random.Next(4)).Select(i =>
                    $"{seed}.{_random.Next(1000)}" + new string('x', _random.Next(10) == 0 ? 3000 : _random.Next(400))),
            ];
            entries.AddRange(texts.Select(text => $"{_term}:{text}"));
            WriterOf(group).Append(
                new GroupId((uint)group + 1),
                new LogIndex((ulong)first + 1),
                texts.Length,
                LogFixture.Entries(_term, texts));
        }

        private void Save()
        {
            int group = _random.Next(3);
            HardState state = new(
                new Term(++_term), new NodeId((ushort)_random.Next(4)), new LogIndex((ulong)_random.Next(100)));
            _written.HardStates[group] = state;
            WriterOf(group).Save(new GroupId((uint)group + 1), state);
        }

        private void Commit()
        {
            ulong first = _fixture.Writer.Submit();
            ulong second = _second.Submit();
            _fixture.Log.CommitOnce();
            Assert.True(first == 0 || _fixture.Sink.Last == first);
            Assert.True(second == 0 || _secondSink.Last == second);
            _reported = _written.Copy();
        }

        /// <summary>
        /// The next write does not come to its end: the power fails before, during or after it, the process is killed,
        /// or the disk says no.
        /// </summary>
        private void CommitAndLose()
        {
            bool power = _random.Next(3) > 0;
            DiskStep at = _random.Next(5) > 0 ? DiskStep.SyncData : DiskStep.Write;
            bool error = _random.Next(4) == 0;
            _fixture.Disk.Fault = (step, _) => step != at
                ? 0
                : error
                ? DiskException.InputOutputError
                : throw new OperationCanceledException();
            bool any = _fixture.Writer.Submit() + _second.Submit() > 0;
            ulong before = _fixture.Sink.Last;
            try
            {
                _fixture.Log.CommitOnce();
                Assert.Equal(any, _fixture.Sink.Failures.Count > 0);
            }
            catch (OperationCanceledException)
            {
                // The end of this life, in the middle of an operation.
            }

            Assert.Equal(before, _fixture.Sink.Last);
            _fixture.Disk.Fault = null;
            if (power)
            {
                _fixture.Disk.Crash(_random.Next(4) == 0 ? null : _random);
            }
            else
            {
                _fixture.Disk.Kill();
            }

            Crashes++;
            Start();
        }

        private void Start()
        {
            _fixture.Lines.Clear();
            _fixture.Open();
            _secondSink = new RecordingSink();
            _second = _fixture.Log.OpenWriter(_secondSink);
            Cuts += _fixture.Lines.Count;
            if (_reported.Equals(_fixture))
            {
                _written = _reported.Copy();
                return;
            }

            Assert.True(_written.Equals(_fixture), $"seed {seed}: neither what was reported nor what was written");
            UnreportedKept++;
            _reported = _written.Copy();
        }

        private void Fetch()
        {
            int group = _random.Next(3);
            List<string> entries = _reported.Entries[group];
            if (entries.Count == 0)
            {
                return;
            }

            int first = _random.Next(entries.Count);
            string[] found = _fixture.Fetch(new GroupId((uint)group + 1), (ulong)first + 1, 1 + _random.Next(5000));
            Assert.NotEmpty(found);
            Assert.Equal(entries.Skip(first).Take(found.Length), found);
        }
    }
}
