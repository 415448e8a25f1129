using System.Text;
using Kahuna.Server.Hosting.Administration;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Hosting.Administration;

/// <summary>The verb of the server that leaves a request to recover an administrator in a data directory.</summary>
public sealed class RecoverAdminCommandTests : IDisposable
{
    private const string Password = "correct horse battery";

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task It_leaves_a_request_that_only_the_owner_can_read_and_that_has_no_password()
    {
        string data = DataDirectoryOf("kahuna");
        Assert.Equal(0, await RunAsync(data, "--user", "root", "--password-file", Secret(Password + "\n")));
        string path = Path.Combine(data, RecoveryRequest.FileName);
        RecoveryRequest request = RecoveryRequest.Find(data, "kahuna")!;
        Assert.Equal("root", request.User);
        Assert.True(Kahuna.Server.Access.Passwords.Verify(request.Password, Password));
        Assert.DoesNotContain(Password, await File.ReadAllTextAsync(path), StringComparison.Ordinal);
        if (!OperatingSystem.IsWindows())
        {
            Assert.Equal(UnixFileMode.UserRead | UnixFileMode.UserWrite, File.GetUnixFileMode(path));
        }
    }

    [Fact]
    public async Task The_request_of_another_node_is_the_same_request()
    {
        (string first, string second) = (DataDirectoryOf("kahuna"), DataDirectoryOf("kahuna"));
        Assert.Equal(0, await RunAsync(first, "--user", "root", "--password-file", Secret(Password)));
        string request = Path.Combine(first, RecoveryRequest.FileName);
        Assert.Equal(0, await RunAsync(second, "--request", request));
        Assert.Equal(
            RecoveryRequest.Find(first, "kahuna")!.Fingerprint, RecoveryRequest.Find(second, "kahuna")!.Fingerprint);
        Assert.Equal(0, await RunAsync(second, "--user", "root", "--password-file", Secret(Password)));
        Assert.NotEqual(
            RecoveryRequest.Find(first, "kahuna")!.Fingerprint, RecoveryRequest.Find(second, "kahuna")!.Fingerprint);
    }

    [Fact]
    public async Task A_request_of_another_cluster_is_refused_by_verb_and_node()
    {
        (string first, string second) = (DataDirectoryOf("kahuna"), DataDirectoryOf("another"));
        Assert.Equal(0, await RunAsync(first, "--user", "root", "--password-file", Secret(Password)));
        string request = Path.Combine(first, RecoveryRequest.FileName);
        Assert.Equal(1, await RunAsync(second, "--request", request));
        Assert.Null(RecoveryRequest.Find(second, "another"));
        File.Copy(request, Path.Combine(second, RecoveryRequest.FileName));
        Assert.Throws<InvalidDataException>(() => RecoveryRequest.Find(second, "another"));
    }

    [Fact]
    public async Task A_directory_in_use_and_one_of_no_node_are_refused()
    {
        string data = DataDirectoryOf("kahuna");
        using (DataDirectoryIdentity.Hold(data))
        {
            Assert.Equal(1, await RunAsync(data, "--user", "root", "--password-file", Secret(Password)));
        }

        Assert.Null(RecoveryRequest.Find(data, "kahuna"));
        string none = Path.Combine(_directory.Path, "none");
        Assert.Equal(1, await RunAsync(none, "--user", "root", "--password-file", Secret(Password)));
        Assert.False(Directory.Exists(none));
        Assert.Equal(1, await RunAsync(_directory.Path, "--user", "root", "--password-file", Secret(Password)));
    }

    [Theory]
    [InlineData("root", "short")]
    [InlineData("root", "")]
    [InlineData("ro:ot", Password)]
    [InlineData("ro\not", Password)]
    [InlineData("", Password)]
    public async Task A_bad_name_and_a_weak_password_are_refused(string user, string password)
    {
        string data = DataDirectoryOf("kahuna");
        Assert.Equal(1, await RunAsync(data, "--user", user, "--password-file", Secret(password)));
        Assert.Null(RecoveryRequest.Find(data, "kahuna"));
    }

    [Fact]
    public async Task Files_that_others_can_read_are_refused()
    {
        if (OperatingSystem.IsWindows())
        {
            return;
        }

        string data = DataDirectoryOf("kahuna");
        string readable = Secret(Password);
        File.SetUnixFileMode(readable, UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.OtherRead);
        Assert.Equal(1, await RunAsync(data, "--user", "root", "--password-file", readable));
        Assert.Equal(0, await RunAsync(data, "--user", "root", "--password-file", Secret(Password)));
        string request = Path.Combine(data, RecoveryRequest.FileName);
        File.SetUnixFileMode(request, UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.GroupRead);
        Assert.Throws<InvalidDataException>(() => RecoveryRequest.Find(data, "kahuna"));
    }

    [Theory]
    [InlineData("")]
    [InlineData("{}")]
    [InlineData("[]")]
    [InlineData("null")]
    [InlineData("{\"format\":2}")]
    [InlineData("{\"format\":\"1\"}")]
    [InlineData("not json")]
    public void What_is_no_request_is_refused_with_one_line(string content)
    {
        string path = Secret(content);
        InvalidDataException refused = Assert.Throws<InvalidDataException>(() => RecoveryRequest.Read(path, "kahuna"));
        Assert.DoesNotContain('\n', refused.Message);
    }

    [Theory]
    [InlineData("\"rounds\":210000", "\"rounds\":1")]
    [InlineData("\"rounds\":210000", "\"rounds\":2000000000")]
    [InlineData("\"user\":\"root\"", "\"user\":\"a:b\"")]
    [InlineData("\"user\":\"root\"", "\"user\":null")]
    [InlineData("\"clusterId\":\"kahuna\"", "\"clusterId\":null")]
    [InlineData("\"id\":\"", "\"id\":\"0")]
    [InlineData("\"salt\":\"", "\"salt\":\"00")]
    [InlineData("\"madeMs\":", "\"madeMs\":1e300,\"was\":")]
    [InlineData("\"hash\":\"", "\"hash\":\"0")]
    public void A_request_that_was_changed_is_refused(string from, string to)
    {
        RecoveryRequest made = RecoveryRequest.New("kahuna", "root", Password, DateTimeOffset.UtcNow);
        made.Write(_directory.Path);
        string path = Path.Combine(_directory.Path, RecoveryRequest.FileName);
        string text = File.ReadAllText(path);
        Assert.Contains(from, text, StringComparison.Ordinal);
        string changed = Secret(text.Replace(from, to, StringComparison.Ordinal));
        Assert.Throws<InvalidDataException>(() => RecoveryRequest.Read(changed, "kahuna"));
    }

    [Fact]
    public async Task The_ways_to_say_what_is_asked_for_exclude_each_other()
    {
        string data = DataDirectoryOf("kahuna");
        string secret = Secret(Password);
        Assert.Equal(1, await RunAsync(data));
        Assert.Equal(1, await RunAsync(data, "--user", "root"));
        Assert.Equal(1, await RunAsync(data, "--password-file", secret));
        Assert.Equal(1, await RunAsync(data, "--user", "root", "--password-file", secret, "--request", secret));
        Assert.Null(RecoveryRequest.Find(data, "kahuna"));
    }

    [Fact]
    public async Task An_old_request_is_refused()
    {
        (string first, string second) = (DataDirectoryOf("kahuna"), DataDirectoryOf("kahuna"));
        RecoveryRequest.New("kahuna", "root", Password, DateTimeOffset.UtcNow - RecoveryRequest.Lifetime).Write(first);
        Assert.Equal(1, await RunAsync(second, "--request", Path.Combine(first, RecoveryRequest.FileName)));
        Assert.Null(RecoveryRequest.Find(second, "kahuna"));
    }

    private static Task<int> RunAsync(string data, params string[] more) =>
        RecoverAdminCommand.RunAsync(["--data", data, .. more]);

    private string DataDirectoryOf(string cluster)
    {
        string path = Path.Combine(_directory.Path, Guid.NewGuid().ToString("N"));
        Directory.CreateDirectory(path);
        DataDirectoryIdentity.New(new NodeOptions
        {
            ClusterId = cluster,
            NodeId = new NodeId(1),
            DataDirectory = path,
        }).Write(path);
        return path;
    }

    private string Secret(string content)
    {
        string path = Path.Combine(_directory.Path, Guid.NewGuid().ToString("N"));
        File.WriteAllBytes(path, Encoding.UTF8.GetBytes(content));
        if (!OperatingSystem.IsWindows())
        {
            File.SetUnixFileMode(path, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        }

        return path;
    }
}
