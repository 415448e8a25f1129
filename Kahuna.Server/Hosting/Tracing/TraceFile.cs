using System.Buffers;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting.Tracing;

/// <summary>
/// A file of lines that is only added to. What is written is with the system and outlives the process; it is not synced. Owned by one
/// <see cref="NodeTrace"/>; not thread-safe.
/// </summary>
internal sealed class TraceFile : IDisposable
{
    /// <summary>Nothing waits for longer than a turn anyway; this bounds the memory of a turn that is very large.</summary>
    private const int GatheredBytesMax = 1 << 20;

    private readonly FileStream _file;
    private readonly ArrayBufferWriter<byte> _gathered = new(64 * 1024);
    private bool _closed;

    private TraceFile(FileStream file) => _file = file;

    /// <summary>The disk refuses what is added, and nothing is written from now on. Raised once.</summary>
    public event Action<Exception>? Failed;

    /// <summary>What was added and not yet written.</summary>
    public IBufferWriter<byte> Gathered => _gathered;

    /// <summary>Opens the file for more lines, and makes it if there is none. A line that an earlier process could not finish is ended.</summary>
    /// <exception cref="IOException">It cannot be written; one clear sentence.</exception>
    public static TraceFile Open(string path)
    {
        try
        {
            // Unbuffered: one write of ours is one of the system's. Readers may look at it meanwhile.
            TraceFile opened = new(new FileStream(path, FileMode.OpenOrCreate, FileAccess.ReadWrite, FileShare.Read, bufferSize: 0));
            opened.EndLastLine();
            return opened;
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw new IOException($"{OptionSetting.Trace.Flag}: cannot write {path}: {OneLine.Of(error.Message)}", error);
        }
    }

    /// <summary>The line that was added is complete.</summary>
    public void EndLine()
    {
        _gathered.Write("\n"u8);
        if (_gathered.WrittenCount >= GatheredBytesMax)
        {
            Flush();
        }
    }

    /// <summary>Hands what was added to the system, with one call.</summary>
    public void Flush()
    {
        if (_gathered.WrittenCount == 0)
        {
            return;
        }

        try
        {
            if (!_closed)
            {
                _file.Write(_gathered.WrittenSpan);
            }
        }
        catch (IOException error)
        {
            _closed = true;
            Failed?.Invoke(new IOException($"The trace {_file.Name} cannot be written any more: {OneLine.Of(error.Message)}", error));
        }
        finally
        {
            _gathered.ResetWrittenCount();
        }
    }

    public void Dispose()
    {
        _closed = true;
        _file.Dispose();
    }

    private void EndLastLine()
    {
        if (!_file.CanSeek || _file.Length == 0)
        {
            return;
        }

        _file.Seek(-1, SeekOrigin.End);
        if (_file.ReadByte() != '\n')
        {
            _gathered.Write("\n"u8);
        }
    }
}
