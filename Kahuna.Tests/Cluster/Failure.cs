
namespace Kahuna.Tests.Cluster;

/// <summary>A write that failed, and when its writer learned of it. Immutable.</summary>
internal readonly record struct Failure(TimeSpan At, KahunaException Error);
