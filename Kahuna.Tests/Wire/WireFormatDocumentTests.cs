using System.Globalization;
using System.Runtime.CompilerServices;
using Kahuna.Server.State.Rows;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;

namespace Kahuna.Tests.Wire;

/// <summary>docs/wire-format.md names every number that the code uses.</summary>
public sealed class WireFormatDocumentTests
{
    private readonly string _page = ReadPage();

    [Fact]
    public void Every_status_has_its_row()
    {
        foreach (OutcomeStatus status in Enum.GetValues<OutcomeStatus>().Where(status => status != OutcomeStatus.Unset))
        {
            Assert.Contains(Row((int)status, status.ToString()), _page, StringComparison.Ordinal);
        }
    }

    [Fact]
    public void Every_frame_has_its_row()
    {
        foreach (FrameKind kind in Enum.GetValues<FrameKind>())
        {
            Assert.Contains(Row((int)kind, kind.ToString()), _page, StringComparison.Ordinal);
        }
    }

    [Fact]
    public void Every_operation_has_its_row_with_the_flags_it_takes()
    {
        foreach (CommandKind kind in Enum.GetValues<CommandKind>()
            .Where(kind => kind != CommandKind.Unset && (byte)kind is < 0x40 or >= 0x80))
        {
            string number = (byte)kind < 0x80
                ? ((int)kind).ToString(CultureInfo.InvariantCulture)
                : $"0x{(int)kind:x2}";
            string row = _page.Split('\n').Single(line =>
                line.StartsWith($"| {number} | {kind.ToString().ToLowerInvariant()} |", StringComparison.Ordinal));
            for (int bit = 0; bit < 15; bit++)
            {
                Assert.Equal(
                    Takes(kind, (CommandFlags)(1 << bit)),
                    row.Replace("*", "", StringComparison.Ordinal).Split(' ').Contains($"0x{1 << bit:x3}"));
            }
        }
    }

    [Fact]
    public void Limits_are_those_of_the_code()
    {
        StateLimits limits = new();
        Assert.Contains($"version {Limits.WireVersion}", _page, StringComparison.Ordinal);
        foreach (string words in new[]
        {
            string.Create(CultureInfo.InvariantCulture, $"{Limits.FrameBytesMax:N0} bytes"),
            string.Create(CultureInfo.InvariantCulture, $"{Limits.FrameBytesTarget / 1024} KiB"),
            string.Create(CultureInfo.InvariantCulture, $"{Limits.InFlightPerStreamMax:N0}"),
            string.Create(CultureInfo.InvariantCulture, $"1 to {Limits.TtlMsMax:N0}"),
            string.Create(CultureInfo.InvariantCulture, $"1 to {Limits.KeyBytesMax:N0}"),
            string.Create(
                CultureInfo.InvariantCulture,
                $"the last {limits.HistoryPerKey} replaced revisions for {limits.HistoryAgeMs / 60_000} minutes"),
            string.Create(CultureInfo.InvariantCulture, $"{limits.HistoryBytes >> 20} MiB per partition"),
        })
        {
            Assert.Contains(words, _page, StringComparison.Ordinal);
        }
    }

    private static string Row(int number, string name) =>
        string.Create(CultureInfo.InvariantCulture, $"| {number} | {name} |");

    private static bool Takes(CommandKind kind, CommandFlags flag)
    {
        CommandFlags flags = flag | kind switch
        {
            CommandKind.Extend or CommandKind.LockAcquire => CommandFlags.Ttl,
            CommandKind.Increment or CommandKind.SequenceNext or CommandKind.LockObserve => CommandFlags.Number,
            CommandKind.TransactionDecide or CommandKind.TransactionFinish => CommandFlags.Number,
            CommandKind.LockExtend => CommandFlags.IfRevision | CommandFlags.Ttl,
            CommandKind.LockRelease or CommandKind.CutConfirm or CommandKind.CutEnd => CommandFlags.IfRevision,
            CommandKind.LockAwait => CommandFlags.IfRevision | CommandFlags.Number,
            CommandKind.TransactionHold => CommandFlags.Number,
            _ => CommandFlags.None,
        };
        byte[] form = kind switch
        {
            CommandKind.SequenceCreate or CommandKind.SequenceUpdate => new byte[SequenceBody.Bytes],
            CommandKind.LockAcquire => [1, 0, 0, 0, 1, 0, (byte)'o'],
            CommandKind.LockExtend or CommandKind.LockRelease or CommandKind.LockAwait => [(byte)'o'],
            CommandKind.Transaction => [0, 0, 1, 0, 0, 0, 0, 0, .. OneGet()],
            CommandKind.GetMany => OneGet(),
            CommandKind.TransactionPrepare =>
                [.. new byte[16], 232, 3, 0, 0, 0, 0, 1, 0, 0, 0, (byte)'k', 0, 0, 1, 0, 0, 0, 0, 0, .. OneGet()],
            CommandKind.TransactionDecide or CommandKind.TransactionFinish or CommandKind.TransactionForget =>
                new byte[TransactionId.Bytes],
            CommandKind.TransactionHold => [.. new byte[24], 1, 0, 0, 0, 1, 0, 0, 0],
            CommandKind.TransactionRelease => new byte[TransactionId.Bytes],
            CommandKind.Script => new byte[ScriptBody.HeaderBytes],
            _ => [],
        };
        if (form.Length == SequenceBody.Bytes)
        {
            new SequenceBody
            {
                Increment = 1,
                Mask = kind == CommandKind.SequenceUpdate ? SequenceBody.ChangesIncrement : (byte)0,
            }.Write(form);
        }

        Command command = new()
        {
            Kind = kind,
            Durability = Durability.Persistent,
            Flags = flags
                | (flag == CommandFlags.NullCompared ? CommandFlags.IfValue : 0)
                | (flag is CommandFlags.Opening or CommandFlags.Keyed ? CommandFlags.Session : 0),
            Value = form,
            ComparedValue = kind is CommandKind.KeyRange or CommandKind.KeyRangeDelete or CommandKind.CutOpen
                or CommandKind.CutConfirm or CommandKind.CutEnd ? "l"u8
                : kind is CommandKind.Transaction or CommandKind.TransactionPrepare && flag == CommandFlags.IfValue
                ? "0123456789abcdef"u8 : default,
            Number = 1,
            Sequence = 1,
            Key = "k"u8,
            TtlMs = 1,
            AtRevision = 1,
            ComparedRevision = 1,
            FenceToken = 1,
            FenceName = flag == CommandFlags.Fenced ? "k"u8 : default,
        };
        return CommandCheck.IsGood(command, Limits.ValueBytesDefault, out _, out _);
    }

    private static byte[] OneGet()
    {
        ByteBuffer list = ByteBuffer.Rent();
        CommandList.Append(
            list, new Command { Kind = CommandKind.Get, Durability = Durability.Persistent, Key = "k"u8 });
        byte[] bytes = list.Written.ToArray();
        list.Return();
        return bytes;
    }

    private static string ReadPage([CallerFilePath] string source = "") =>
        File.ReadAllText(Path.Combine(Path.GetDirectoryName(source)!, "..", "..", "docs", "wire-format.md"));
}
