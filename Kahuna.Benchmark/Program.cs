using System.Runtime.InteropServices;
using System.Text;
using Kahuna.Benchmark;
using Kahuna.Benchmark.Workloads;

UTF8Encoding utf8 = new(encoderShouldEmitUTF8Identifier: false);
using Stream output = Console.OpenStandardOutput();
using StreamWriter outputText = new(output, utf8) { AutoFlush = true };
using StreamWriter error = new(Console.OpenStandardError(), utf8) { AutoFlush = true };
using CancellationTokenSource stop = new();

// The first signal ends the load with a partial report; a second one is left to the system, which ends the process.
void Stop(PosixSignalContext context)
{
    if (!stop.IsCancellationRequested)
    {
        context.Cancel = true;
        stop.Cancel();
    }
}

using PosixSignalRegistration interrupt = PosixSignalRegistration.Create(PosixSignal.SIGINT, Stop);
using PosixSignalRegistration terminate = PosixSignalRegistration.Create(PosixSignal.SIGTERM, Stop);

BenchStreams streams = new(output, outputText, error, !Console.IsOutputRedirected, !Console.IsErrorRedirected);
BenchApp app = new(streams, WorkloadList.All, TargetFactory.Create);
int exitCode = await app.RunAsync(args, stop.Token).ConfigureAwait(false);

// A thread of an embedded node that did not stop must not keep the process: the report is written.
Environment.Exit(exitCode);
