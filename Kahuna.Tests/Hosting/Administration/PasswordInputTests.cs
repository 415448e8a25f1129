using System.Text;
using Kahuna.Server.Hosting.Administration;

namespace Kahuna.Tests.Hosting.Administration;

/// <summary>Passwords for the verbs of the server: from a file, or from standard input.</summary>
public sealed class PasswordInputTests
{
    [Theory]
    [InlineData("correct horse battery", "correct horse battery")]
    [InlineData("correct horse battery\n", "correct horse battery")]
    [InlineData(" pass wörd \r\n", " pass wörd ")]
    [InlineData("", "")]
    public void A_dash_is_standard_input_up_to_its_end(string input, string password) =>
        Assert.Equal(password, BootstrapFile.ReadPassword("-", () => Input(input)));

    [Fact]
    public void No_more_is_read_than_a_password_may_have()
    {
        using MemoryStream input = Input(new string('x', 1_000_000));
        InvalidDataException refusal = Assert.Throws<InvalidDataException>(
            () => BootstrapFile.ReadPassword("-", () => new BufferedStream(input, 1)));
        Assert.Contains("4096 bytes", refusal.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void A_path_is_a_file_and_standard_input_is_not_touched()
    {
        using TemporaryDirectory directory = new();
        string path = directory.File("password", "correct horse battery\n");
        if (!OperatingSystem.IsWindows())
        {
            File.SetUnixFileMode(path, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        }

        Assert.Equal(
            "correct horse battery",
            BootstrapFile.ReadPassword(path, static () => throw new InvalidOperationException("not asked for")));
    }

    private static MemoryStream Input(string text) => new(Encoding.UTF8.GetBytes(text));
}
