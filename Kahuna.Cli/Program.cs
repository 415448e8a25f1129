using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Text;
using Kahuna.Cli;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Terminal;
using Microsoft.Win32.SafeHandles;

UTF8Encoding utf8 = new(encoderShouldEmitUTF8Identifier: false);
using StreamWriter error = new(Console.OpenStandardError(), utf8) { AutoFlush = true };
using Interrupts interrupts = new();

// The first signal ends the command, a second one is left to the system, which ends the process.
using PosixSignalRegistration interrupt = PosixSignalRegistration.Create(
    PosixSignal.SIGINT, context => context.Cancel = interrupts.Interrupt());
using PosixSignalRegistration terminate = PosixSignalRegistration.Create(
    PosixSignal.SIGTERM, context => context.Cancel = interrupts.Terminate());
CliStreams streams = new(Console.OpenStandardInput(), OpenOutput(), error)
{
    IsOutputTerminal = !Console.IsOutputRedirected,
    IsErrorTerminal = !Console.IsErrorRedirected,
};
CliEnvironment environment = new(streams, Environment.GetEnvironmentVariable, new ConsolePrompt(error))
{
    Age = AgeOfProcess,
    LeaveOutMachineAuthorities = MachineAuthorities.LeaveOut,
    Terminal = ConsoleTerminal.IsThere ? new ConsoleTerminal() : null,
    Interrupts = interrupts,
};
CliApp app = new(environment);
await using (app.ConfigureAwait(false))
{
    return await app.RunAsync(args, interrupts.Process).ConfigureAwait(false);
}

static TimeSpan AgeOfProcess()
{
    using Process self = Process.GetCurrentProcess();
    return DateTime.Now - self.StartTime;
}

// The console's stream says nothing when the reader of a pipe has gone, and a watch would go on for nobody. A file
// keeps the console's stream: only that one advances the position that other processes share.
static Stream OpenOutput()
{
    if (OperatingSystem.IsWindows() || !Console.IsOutputRedirected)
    {
        return Console.OpenStandardOutput();
    }

    FileStream pipe = new(new SafeFileHandle(1, ownsHandle: false), FileAccess.Write, bufferSize: 0);
    return pipe.CanSeek ? Console.OpenStandardOutput() : pipe;
}
