using System.Globalization;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>Gives what a test would print to a writer. As thread-safe as that is.</summary>
internal sealed class WriterOutput(TextWriter target) : ITestOutputHelper
{
    public void WriteLine(string message) => target.WriteLine(message);

    public void WriteLine(string format, params object[] args) =>
        target.WriteLine(string.Format(CultureInfo.InvariantCulture, format, args));
}
