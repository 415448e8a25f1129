using System.Text;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Transport;

namespace Kahuna.Tests.Hosting;

/// <summary>The cluster's secret is replaced while a node runs.</summary>
public sealed class ClusterSecretWatchTests : IDisposable
{
    private const string Old = "an-old-secret-of-a-cluster";
    private const string New = "a-new-secret-of-a-cluster";

    private readonly TemporaryDirectory _directory = new();
    private readonly LogRecorder _log = new();
    private readonly string _file;
    private readonly ClusterSecretWatch _watch;

    public ClusterSecretWatchTests()
    {
        _file = _directory.File("secret", Old);
        _watch = new ClusterSecretWatch(_file, _log);
    }

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void What_was_found_twice_counts()
    {
        Write($"{Old}\n{New}\n");
        _watch.Check();
        Assert.Equal([Old], Known());
        _watch.Check();
        Assert.Equal([Old, New], Known());
        Assert.Equal(Old, Encoding.ASCII.GetString(_watch.Secrets.Own));
        Write($"{New}\n{Old}\n");
        _watch.Check();
        _watch.Check();
        Assert.Equal(New, Encoding.ASCII.GetString(_watch.Secrets.Own));
        Write(New);
        _watch.Check();
        _watch.Check();
        Assert.Equal([New], Known());
        Assert.Equal(3, _log.Count("was read again"));
        _watch.Check();
        Assert.Equal(3, _log.Count("was read again"));
    }

    [Fact]
    public void What_is_still_being_written_does_not_count()
    {
        for (int length = 16; length <= New.Length; length++)
        {
            Write(New[..length]);
            _watch.Check();
            Assert.Equal([Old], Known());
        }

        Write(Old);
        _watch.Check();
        Write(New);
        _watch.Check();
        Assert.Equal([Old], Known());
        Assert.Empty(_log.Lines);
    }

    [Fact]
    public void An_unusable_file_is_reported_once_and_changes_nothing()
    {
        foreach (string content in (string[])["short", "", "one more secret of it\ntwo more secrets of it\nthree more"])
        {
            Write(content);
            _watch.Check();
            _watch.Check();
            _watch.Check();
        }

        File.Delete(_file);
        _watch.Check();
        _watch.Check();
        Assert.Equal([Old], Known());
        Assert.Equal(4, _log.Count("is unusable"));
        Assert.DoesNotContain(_log.Lines, static line => line.Contains("more secret", StringComparison.Ordinal));
        Write(Old);
        _watch.Check();
        Write("short");
        _watch.Check();
        Assert.Equal(5, _log.Count("is unusable"));
    }

    [Fact]
    public void A_standalone_node_has_none()
    {
        ClusterSecretWatch none = new(null, _log);
        none.Check();
        Assert.Empty(none.Secrets.Accepted);
        Assert.Empty(none.Secrets.Own);
    }

    private void Write(string content) => File.WriteAllText(_file, content);

    private IEnumerable<string> Known() => _watch.Secrets.Accepted.Select(Encoding.ASCII.GetString);
}
