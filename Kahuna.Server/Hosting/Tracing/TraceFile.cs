using System.Buffers;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting.Tracing;

/// <summary>
/// An append-only file of lines. Written lines are with the operating system and outlive the process; the file is not
/// synced. Owned by one <see cref="NodeTrace"/>; not thread-safe.
/// </summary>
internal sealed class TraceFile : IDisposable
{
    /// <summary>Lines wait no longer than a turn; this bounds the memory of a very large turn.</summary>
    private const int BufferBytesMax = 1 << 20;

    private readonly FileStream _file;
    private readonly ArrayBufferWriter<byte> _buffer = new(64 * 1024);
    private bool _closed;

    private TraceFile(FileStream file) => _file = file;

    /// <summary>A write failed, and nothing is written from now on. Raised once.</summary>
    public event Action<Exception>? Failed;

    /// <summary>The buffer of lines that are not written yet.</summary>
    public IBufferWriter<byte> Buffer => _buffer;

    /// <summary>
    /// Opens or creates the file for appending. Terminates a line that an earlier process left incomplete.
    /// </summary>
    /// <exception cref="IOException">It cannot be written; the message is one line.</exception>
    public static TraceFile Open(string path)
    {
        try
        {
            // Unbuffered: one write here is one system call. Readers may open the file meanwhile.
            TraceFile opened = new(
                new FileStream(path, FileMode.OpenOrCreate, FileAccess.ReadWrite, FileShare.Read, bufferSize: 0));
            opened.EndLastLine();
            return opened;
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw new IOException(
                $"{OptionSetting.Trace.Flag}: cannot write {path}: {OneLine.Of(error.Message)}", error);
        }
    }

    /// <summary>Terminates the line in the buffer.</summary>
    public void EndLine()
    {
        _buffer.Write("\n"u8);
        if (_buffer.WrittenCount >= BufferBytesMax)
        {
            Flush();
        }
    }

    /// <summary>Writes the buffer with one system call.</summary>
    public void Flush()
    {
        if (_buffer.WrittenCount == 0)
        {
            return;
        }

        try
        {
            if (!_closed)
            {
                _file.Write(_buffer.WrittenSpan);
            }
        }
        catch (IOException error)
        {
            _closed = true;
            Failed?.Invoke(new IOException(
                $"The trace {_file.Name} can no longer be written: {OneLine.Of(error.Message)}", error));
        }
        finally
        {
            _buffer.ResetWrittenCount();
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
            _buffer.Write("\n"u8);
        }
    }
}
