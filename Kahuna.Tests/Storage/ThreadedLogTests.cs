using System.Collections.Concurrent;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Tests.Partitions;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Storage;

/// <summary>The log with its threads on the real disk.</summary>
public sealed class ThreadedLogTests
{
    private static readonly TimeSpan s_patience = LastNet.Span;

    private static readonly SegmentedLogOptions s_small =
        new() { SegmentBytes = 256 * 1024, FirstSegmentBytes = 64 * 1024 };

    [Fact]
    public async Task WritersOnTheirOwnThreadsAndAReaderBeside()
    {
        using TemporaryDirectory directory = new();
        const int Loops = 3;
        const int Batches = 400;
        await using (ThreadedLog log = ThreadedLog.Open(directory.Path, s_small, RethrownErrors.Shared))
        {
            Thread[] loops =
            [
                .. Enumerable.Range(1, Loops)
                    .Select(loop => new Thread(() => RunLoop(log, new GroupId((uint)loop), Batches))),
            ];
            foreach (Thread loop in loops)
            {
                loop.Start();
            }

            foreach (Thread loop in loops)
            {
                Assert.True(loop.Join(s_patience));
            }

            Assert.Null(log.Failure);
        }

        await using ThreadedLog again = ThreadedLog.Open(directory.Path, s_small, RethrownErrors.Shared);
        for (uint loop = 1; loop <= Loops; loop++)
        {
            Assert.Equal(new LogIndex(Batches), again.Recovered(new GroupId(loop)).LastIndex);
            ulong next = 1;
            again.Replay(new GroupId(loop), new LogIndex(1), new LogIndex(Batches), (first, chunk) =>
            {
                foreach (string text in LogFixture.Texts(chunk.Span))
                {
                    Assert.StartsWith($"1:{loop} {next++}.", text, StringComparison.Ordinal);
                }
            });
            Assert.Equal((ulong)Batches + 1, next);
        }
    }

    [Fact]
    public async Task WhatWasSubmittedBeforeDisposalIsWritten()
    {
        using TemporaryDirectory directory = new();
        await using (ThreadedLog log = ThreadedLog.Open(directory.Path, s_small, RethrownErrors.Shared))
        {
            ILogWriter writer = log.OpenWriter(new RecordingSink());
            for (ulong i = 1; i <= 50; i++)
            {
                writer.Append(new GroupId(1), new LogIndex(i), 1, LogFixture.Entries(1, "x"));
                writer.Submit();
            }
        }

        await using ThreadedLog again = ThreadedLog.Open(directory.Path, s_small, RethrownErrors.Shared);
        Assert.Equal(new LogIndex(50), again.Recovered(new GroupId(1)).LastIndex);
    }

    private static void RunLoop(ThreadedLog log, GroupId group, int batches)
    {
        WaitingSink sink = new();
        ILogWriter writer = log.OpenWriter(sink);
        for (ulong i = 1; i <= (ulong)batches; i++)
        {
            writer.Append(group, new LogIndex(i), 1, LogFixture.Entries(1, $"{group} {i}." + new string('x', 500)));
            ulong number = writer.Submit();
            if (writer.Pending > 3 || i == (ulong)batches)
            {
                sink.WaitFor(number);
            }

            if (i % 50 == 0)
            {
                sink.WaitFor(number);
                writer.Fetch(group, new NodeId(2), new LogIndex(i / 2), 2000);
                Assert.StartsWith(
                    $"1:{group} {i / 2}.", LogFixture.Texts(sink.NextAnswer())[0], StringComparison.Ordinal);
            }
        }

        Assert.Equal(0, writer.Pending);
    }

    /// <summary>Lets a test's thread wait for reports.</summary>
    private sealed class WaitingSink : ILogSink
    {
        private readonly BlockingCollection<ulong> _persisted = [];
        private readonly BlockingCollection<byte[]> _answers = [];
        private ulong _reached;

        public void WaitFor(ulong batch)
        {
            while (_reached < batch)
            {
                Assert.True(_persisted.TryTake(out ulong next, s_patience));
                Assert.True(next > _reached);
                _reached = next;
            }
        }

        public byte[] NextAnswer()
        {
            Assert.True(_answers.TryTake(out byte[]? answer, s_patience));
            return answer;
        }

        public void Persisted(ulong batch) => _persisted.Add(batch);

        public void Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries)
        {
            _answers.Add(entries.Written.ToArray());
            entries.Return();
        }

        public void Failed(Exception error) => throw error;
    }
}
