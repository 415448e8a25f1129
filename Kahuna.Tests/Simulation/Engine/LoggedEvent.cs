using System.Globalization;
using Kahuna.Tests.Simulation.Workload;

namespace Kahuna.Tests.Simulation.Engine;

/// <summary>One event of a run: what a trace prints of it, and a sentence for a person. Immutable.</summary>
internal readonly record struct LoggedEvent(
    long Order, long AtNs, long Step, SimEvent Kind, int Node, long A, long B, string? Words)
{
    /// <summary>
    /// It tells what happens in the run. The others are traffic and work of nodes, thousands of them for each of these.
    /// </summary>
    public static bool IsTold(SimEvent kind) =>
        kind is not (SimEvent.Send or SimEvent.Deliver or SimEvent.Lose or SimEvent.Commit or SimEvent.Persisted
        or SimEvent.Fetch or SimEvent.KeeperStep or SimEvent.Reply or SimEvent.UnaryCall);

    /// <summary>It tells of calls and streams; the others that are told are of nodes and faults.</summary>
    public static bool IsOfCallers(SimEvent kind) =>
        kind is SimEvent.StreamOpen or SimEvent.StreamEnd or SimEvent.Call or SimEvent.Return or SimEvent.Transaction;

    /// <summary>A line of a trace: seconds, step, node, kind, two numbers and words.</summary>
    public override string ToString() => string.Create(
        CultureInfo.InvariantCulture,
        $"{AtNs / 1e9,12:F6} {Step,9} {(Node == 0 ? "  " : "n" + Node),-3} {Kind,-12} {A} {B} {Words}").TrimEnd();

    /// <summary>A line of a story: seconds, and a sentence.</summary>
    public string ToSentence() => string.Create(CultureInfo.InvariantCulture, $"{AtNs / 1e9,11:F3} s  {Sentence()}");

    private string Sentence() => Kind switch
    {
        SimEvent.Start => $"node {Node} starts (its life {A}, directory {B})",
        SimEvent.StartRefused => $"node {Node} refuses to start: {Words}",
        SimEvent.Crash => $"node {Node} loses power",
        SimEvent.Kill => $"node {Node} is killed",
        SimEvent.Stop => $"node {Node} is told to stop",
        SimEvent.Wipe => $"node {Node} loses its disk",
        SimEvent.Build => $"node {Node} gets a build of feature level {B} in place of {A}",
        SimEvent.Pause => $"node {Node} is paused",
        SimEvent.Resume => $"node {Node} goes on after a pause",
        SimEvent.LinkUp => $"nodes {Node} and {A} are linked",
        SimEvent.LinkDown => $"the link of nodes {Node} and {A} is lost",
        SimEvent.Leader => $"node {Node} leads {Words}group {A} in term {B}",
        SimEvent.StreamOpen => $"client {A} opens a stream to node {Node}",
        SimEvent.StreamEnd => $"the stream of client {A} to node {Node} ends",
        SimEvent.Call => $"caller {A} calls {(CallKind)B} of {Words}",
        SimEvent.Return =>
            $"caller {A} is answered {(CallOutcome)(B >> 32)}{Revision((uint)B)}{(Words is null ? "" : ": " + Words)}",
        SimEvent.Transaction => $"transaction {A:x16} at node {Node}: {Words}",
        SimEvent.Fault => $"fault #{A} begins: {Words}",
        SimEvent.FaultEnd => $"fault #{A} ends",
        SimEvent.Heal => "everything is healed",
        SimEvent.StorageDead => $"the storage of node {Node} fails: {Words}",
        SimEvent.Report => $"node {Node} says: {Words}",
        SimEvent.Violation => $"BROKEN: {Words}",
        _ => $"{Kind} {Node} {A} {B} {Words}",
    };

    private static string Revision(uint revision) =>
        revision == 0 ? "" : string.Create(CultureInfo.InvariantCulture, $", revision {revision}");
}
