namespace Kahuna.Tests.Simulation.Workload;

/// <summary>A caller whose work is with locks.</summary>
internal interface ILockUser
{
    /// <summary>Goes on until the load ends.</summary>
    Task RunAsync();
}
