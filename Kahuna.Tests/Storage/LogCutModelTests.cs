using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Tests.Storage;

/// <summary>
/// Seeded sequences of appends, overwrites, releases and restarts on a log that is cut all the time, with an end of the
/// process, a loss of power or an error at any step of the disk, against a simple model: what was reported and not
/// released is there, what is there is right, nothing that was dropped or that lies in a recycled file comes back, and
/// the files take up no more room than they may.
/// </summary>
public sealed class LogCutModelTests
{
    [Fact]
    public void AnySequenceKeepsWhatIsNeededAndLittleMore()
    {
        Run.Figures figures = new();
        for (int seed = 0; seed < 100; seed++)
        {
            new Run(seed, figures).Execute(400);
        }

        // A run in which nothing was dropped, recycled, lost or torn proves nothing.
        Assert.True(
            figures is
            {
                Crashes: > 300, CrashesAtStart: > 50,
                Errors: > 15, Restarts: > 200, Dropped: > 500,
                Recycled: > 500, RecoveredWithoutFirst: > 300, UnreportedKept: > 20,
                KnownStartTerms: > 300, UnknownStartTerms: > 10,
            },
            figures.ToString());
    }

    /// <summary>
    /// The expected content of one group: all entries since its beginning, even those that the log no longer has.
    /// </summary>
    private sealed record Group
    {
        /// <summary>The index before the first of <see cref="Entries"/>, and its term.</summary>
        public (ulong Index, ulong Term) Begin { get; init; }

        public List<string> Entries { get; init; } = [];

        public HardState HardState { get; init; }

        public ulong Last => Begin.Index + (ulong)Entries.Count;

        public ulong TermAt(ulong index) =>
            index == Begin.Index
                ? Begin.Term
                : ulong.Parse(Entries[(int)(index - Begin.Index) - 1].Split(':')[0], null);

        public IEnumerable<string> After(ulong index) => Entries.Skip((int)(index - Begin.Index));

        public Group Copy() => this with { Entries = [.. Entries] };
    }

    private sealed class Run(int seed, Run.Figures figures)
    {
        private const int Groups = 3;
        private const int SegmentBytes = 24 * 1024;
        private const int KeepBytes = 2 * SegmentBytes;

        private readonly Random _random = new(seed);
        private readonly LogFixture _fixture = new(segmentBytes: SegmentBytes, keepBytes: KeepBytes);

        /// <summary>Released in the model, and in this life of the log, which forgets it at its end.</summary>
        private readonly ulong[] _stored = new ulong[Groups];
        private readonly ulong[] _told = new ulong[Groups];
        private Group[] _reported = [.. Enumerable.Range(0, Groups).Select(_ => new Group())];
        private Group[] _written = [.. Enumerable.Range(0, Groups).Select(_ => new Group())];
        private ulong _term = 1;
        private int _open;

        public sealed record Figures
        {
            public int Crashes { get; set; }

            public int CrashesAtStart { get; set; }

            public int Errors { get; set; }

            public int Restarts { get; set; }

            public int Dropped { get; set; }

            public int Recycled { get; set; }

            public int RecoveredWithoutFirst { get; set; }

            public int UnreportedKept { get; set; }

            public int KnownStartTerms { get; set; }

            public int UnknownStartTerms { get; set; }
        }

        public void Execute(int steps)
        {
            Start();
            for (int i = 0; i < steps; i++)
            {
                switch (_random.Next(40))
                {
                    case < 18:
                        Append();
                        break;
                    case 18:
                        Save();
                        break;
                    case 19 when _random.Next(3) == 0:
                        Restart();
                        break;
                    case < 25:
                        Commit();
                        break;
                    case < 37:
                        Release(_random.Next(Groups));
                        break;
                    case 37:
                        WorkAndLose();
                        break;
                    default:
                        Fetch();
                        break;
                }

                if (_open > SegmentBytes / 3)
                {
                    Commit();
                }
            }
        }

        private static GroupId Id(int group) => new((uint)group + 1);

        /// <summary>Entries up to here are no longer needed.</summary>
        private ulong NotNeeded(int group, Group of) => Math.Max(_stored[group], of.Begin.Index);

        private void Append()
        {
            int number = _random.Next(Groups);
            Group group = _written[number];
            ulong lowest = NotNeeded(number, group);
            ulong after = _random.Next(4) == 0
                ? lowest + (ulong)_random.NextInt64((long)(group.Last - lowest) + 1)
                : group.Last;
            group.Entries.RemoveRange((int)(after - group.Begin.Index), (int)(group.Last - after));
            _term += (ulong)_random.Next(2);
            string[] texts =
            [
                .. Enumerable.Range(0, _random.Next(4)).Select(i =>
                    $"{seed}.{_random.Next(1_000_000)}"
                    + new string('x', _random.Next(5) == 0 ? 3000 : _random.Next(600))),
            ];
            group.Entries.AddRange(texts.Select(text => $"{_term}:{text}"));
            _open += texts.Sum(text => text.Length + 16) + 32;
            _fixture.Writer.Append(Id(number), new LogIndex(after + 1), texts.Length, LogFixture.Entries(_term, texts));
        }

        private void Save()
        {
            int number = _random.Next(Groups);
            HardState state = new(
                new Term(++_term), new NodeId((ushort)_random.Next(4)), new LogIndex((ulong)_random.Next(100)));
            _written[number] = _written[number] with { HardState = state };
            _fixture.Writer.Save(Id(number), state);
        }

        private void Restart()
        {
            int number = _random.Next(Groups);
            Group group = _written[number];
            ulong index = group.Last + (ulong)_random.Next(20);
            _written[number] = new Group { Begin = (index, ++_term), HardState = group.HardState };
            _fixture.Writer.Restart(Id(number), new LogIndex(index), new Term(_term));
            figures.Restarts++;
        }

        private void Commit(bool prepare = true)
        {
            _open = 0;
            ulong batch = _fixture.Writer.Submit();
            Work(prepare);
            Assert.True(batch == 0 || _fixture.Sink.Last == batch);
            _reported = [.. _written.Select(group => group.Copy())];
            if (prepare)
            {
                CheckRoom();
            }
        }

        /// <summary>Runs the steps of the log's threads.</summary>
        private void Work(bool prepare = true)
        {
            int before = _fixture.Log.Segments;
            ulong newest = _fixture.SegmentsOnDisk[^1];
            if (_random.Next(3) == 0)
            {
                _fixture.Log.CheckSpace();
            }

            while (_fixture.Log.CommitOnce())
            {
                figures.Dropped += Math.Max(0, before - _fixture.Log.Segments);
                before = _fixture.Log.Segments;
            }

            if (!prepare)
            {
                return;
            }

            _fixture.Log.PrepareOnce();
            ulong now = _fixture.SegmentsOnDisk[^1];
            figures.Recycled += now > newest
                && SegmentHeader.Read(_fixture.Disk.Content(LogFixture.SegmentPath(now)), out _)!.Value.Recycled
                ? 1
                : 0;
        }

        /// <summary>The state is stored up to some reported entry; the log is notified at once or later.</summary>
        private void Release(int number)
        {
            Group group = _reported[number];
            ulong lowest = NotNeeded(number, group);
            Group written = _written[number];
            if (written.Begin == group.Begin && _random.Next(4) > 0)
            {
                // Raft never overwrites committed entries, so entries to be overwritten are not in the state.
                ulong same = lowest;
                while (same < Math.Min(group.Last, written.Last)
                    && group.Entries[(int)(same - group.Begin.Index)]
                        == written.Entries[(int)(same - group.Begin.Index)])
                {
                    same++;
                }

                _stored[number] = lowest + (ulong)_random.NextInt64((long)(same - lowest) + 1);
            }

            _told[number] = Math.Max(_told[number], _stored[number]);
            _fixture.Log.Release(Id(number), new LogIndex(_stored[number]));
        }

        /// <summary>
        /// In the middle of the log's work the process ends, the power fails, or the disk says no; the next start may
        /// be interrupted too.
        /// </summary>
        private void WorkAndLose()
        {
            bool error = _random.Next(3) == 0;
            int steps = _random.Next(14);
            if (_random.Next(2) == 0)
            {
                // Nothing is left to be written; it meets the preparing of segments.
                Commit(prepare: false);
                steps /= 3;
            }

            _fixture.Disk.Fault = (_, _) => steps-- != 0
                ? 0
                : error
                ? DiskException.InputOutputError
                : throw new OperationCanceledException();
            try
            {
                ulong batch = _fixture.Writer.Submit();
                _open = 0;
                Work();
                if (batch == 0 || _fixture.Sink.Last == batch)
                {
                    _reported = [.. _written.Select(group => group.Copy())];
                }
            }
            catch (OperationCanceledException)
            {
                // The end of this life, in the middle of an operation.
            }

            _fixture.Disk.Fault = null;
            if (error && steps < 0 && _fixture.Log.Failure is null)
            {
                // A segment could not be prepared or removed: the log lives, and tries again.
                figures.Errors++;
                _fixture.Log.PrepareOnce();
                Assert.Null(_fixture.Log.RefuseWrites);
                return;
            }

            Lose();
            while (_random.Next(3) == 0)
            {
                steps = _random.Next(20);
                _fixture.Disk.Fault = (_, _) => steps-- != 0 ? 0 : throw new OperationCanceledException();
                try
                {
                    _fixture.Open();
                }
                catch (OperationCanceledException)
                {
                    figures.CrashesAtStart++;
                }

                _fixture.Disk.Fault = null;
                Lose();
            }

            Start();
        }

        private void Lose()
        {
            figures.Crashes++;
            if (_random.Next(3) == 0)
            {
                _fixture.Disk.Kill();
            }
            else
            {
                _fixture.Disk.Crash(_random.Next(4) == 0 ? null : _random);
            }
        }

        private void Start()
        {
            _fixture.Open();
            Array.Clear(_told);
            _open = 0;
            figures.RecoveredWithoutFirst += _fixture.SegmentsOnDisk[0] > 1 ? 1 : 0;
            if (FindWrong(_reported) is string wrong)
            {
                Assert.True(
                    FindWrong(_written) is null,
                    $"seed {seed}: neither what was reported ({wrong}) nor what was written ({FindWrong(_written)})");
                figures.UnreportedKept++;
                _reported = [.. _written.Select(group => group.Copy())];
            }

            _written = [.. _reported.Select(group => group.Copy())];
            _fixture.Log.PrepareOnce();
        }

        /// <summary>The difference between log and model; null when they agree.</summary>
        private string? FindWrong(Group[] groups)
        {
            for (int i = 0; i < Groups; i++)
            {
                Group group = groups[i];
                RecoveredGroup found = _fixture.Log.Recovered(Id(i));
                ulong start = found.Start.Value;
                if (found.HardState != group.HardState
                    || found.LastIndex.Value != group.Last
                    || start < group.Begin.Index
                    || start > NotNeeded(i, group)
                    || _fixture.Log.StartOf(Id(i)) != found.Start)
                {
                    return $"group {i}: {found}";
                }

                if (found.StartTerm != default && found.StartTerm.Value != group.TermAt(start))
                {
                    return $"group {i}: term of entry {start}";
                }

                figures.KnownStartTerms += start > 0 && found.StartTerm != default ? 1 : 0;
                figures.UnknownStartTerms += start > 0 && found.StartTerm == default ? 1 : 0;
                string[] texts = [.. group.After(start)];
                if (!_fixture.Replay(Id(i), start + 1, group.Last).SequenceEqual(texts)
                    || !found.Terms.SequenceEqual(Runs(group, start)))
                {
                    return $"group {i}: entries after {start}";
                }
            }

            return null;
        }

        private static IEnumerable<TermRun> Runs(Group group, ulong start)
        {
            for (ulong index = start + 1; index <= group.Last; index++)
            {
                if (index == start + 1 || group.TermAt(index) != group.TermAt(index - 1))
                {
                    yield return new TermRun(new LogIndex(index), new Term(group.TermAt(index)));
                }
            }
        }

        /// <summary>
        /// What is kept, or what is not released if that is more; the segment that holds its beginning, the unused part
        /// of the one that is written, the next one, and the two that wait to be used again.
        /// </summary>
        private void CheckRoom()
        {
            long needed = KeepBytes;
            for (int i = 0; i < Groups; i++)
            {
                ulong released = Math.Max(_told[i], _fixture.Log.StartOf(Id(i)).Value);
                needed = Math.Max(needed, _fixture.Log.BytesSince(Id(i), new LogIndex(released)));
                Assert.True(
                    _fixture.Log.StartOf(Id(i)).Value <= NotNeeded(i, _reported[i]),
                    $"seed {seed}: dropped what is needed");
            }

            long used = _fixture.SegmentsOnDisk.Sum(
                segment => (long)_fixture.Disk.Content(LogFixture.SegmentPath(segment)).Length);
            Assert.True(used <= needed + (5 * SegmentBytes), $"seed {seed}: {used} bytes for {needed}");
        }

        private void Fetch()
        {
            int number = _random.Next(Groups);
            Group group = _reported[number];
            ulong start = _fixture.Log.StartOf(Id(number)).Value;
            Assert.Empty(_fixture.Fetch(Id(number), start));
            if (start < group.Last)
            {
                ulong first = start + 1 + (ulong)_random.NextInt64((long)(group.Last - start));
                string[] found = _fixture.Fetch(Id(number), first, 1 + _random.Next(5000));
                Assert.NotEmpty(found);
                Assert.Equal(group.After(first - 1).Take(found.Length), found);
            }
        }
    }
}
