namespace Kahuna.Tests.Tools.Processes;

/// <summary>What /proc says of this very process.</summary>
public sealed class ProcFilesTests
{
    [Fact]
    public void Memory_and_processor_time_of_a_process_are_read()
    {
        if (!OperatingSystem.IsLinux())
        {
            return;
        }

        MemoryUse memory = ProcFiles.Memory(Environment.ProcessId);
        Assert.InRange(memory.Anonymous, 1, memory.Resident);
        Assert.InRange(memory.Resident, 1, memory.Highest);
        double seconds = ProcFiles.ProcessorSeconds(Environment.ProcessId);
        double threads =
            ProcFiles.Threads(Environment.ProcessId, static _ => "all")["all"].Ticks / ProcFiles.TicksPerSecond;
        Assert.InRange(seconds, 0.01, Environment.TickCount64);
        Assert.InRange(threads, 0.01, Environment.TickCount64);
        Assert.Equal(0, ProcFiles.ProcessorSeconds(int.MaxValue));
    }
}
