using System.Globalization;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Storage;

namespace Kahuna.Server.Hosting.Membership;

/// <summary>
/// <c>--rebuild</c>: gives up log and state of a node that the others restore (docs/adr/0009-who-may-vote.md). Reads neither, so that damage does not
/// matter. Used by one thread, before the node starts.
/// </summary>
internal static class DirectoryRebuild
{
    /// <summary>Asks, drops, and leaves a directory that is rejoining. <paramref name="terminal"/>: where the answer is read; null without somebody who could answer.</summary>
    /// <exception cref="DataDirectoryException">Nothing was dropped, or not everything; the message says which, in one line.</exception>
    public static void Run(NodeOptions options, TextReader? terminal, TextWriter output)
    {
        if (options.IsStandalone)
        {
            throw new DataDirectoryException("Nothing was dropped: this node is a cluster of its own, so there is no other node that it could come back from.");
        }

        using IDisposable held = DataDirectoryIdentity.Hold(options.DataDirectory);
        try
        {
            DataDirectoryIdentity? old = ReadOld(options, output);
            Confirm(options, terminal, output);
            KeepMembers(options, old);
            DataDirectoryIdentity rejoining = DataDirectoryIdentity.New(options) with
            {
                Partitions = options.PartitionsGiven || old is null ? options.Partitions : old.Partitions,
                Voting = VotingState.Rejoining,
                Dropping = true,
            };

            // First the mark: a directory that is half dropped must know that it is, and a new id keeps the old content out for good.
            rejoining.Write(options.DataDirectory);
            DirectoryContent.Drop(options.DataDirectory);
            (rejoining with { Dropping = false }).Write(options.DataDirectory);
            output.WriteLine($"Dropped. Node {options.NodeId} starts empty and does not vote until the other nodes have restored it.");
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw new DataDirectoryException($"The rebuild of {options.DataDirectory} failed: {OneLine.Of(error.Message)} Start the node with --rebuild again when the cause is gone.", error);
        }
    }

    /// <summary>What the directory was, if that can be read. A directory of another node is none that may be dropped.</summary>
    private static DataDirectoryIdentity? ReadOld(NodeOptions options, TextWriter output)
    {
        DataDirectoryIdentity? old;
        try
        {
            old = DataDirectoryIdentity.TryRead(options.DataDirectory);
        }
        catch (DataDirectoryException damage)
        {
            output.WriteLine(damage.Message);
            return null;
        }

        old?.CheckOwner(options);
        return old;
    }

    private static void Confirm(NodeOptions options, TextReader? terminal, TextWriter output)
    {
        long log = DirectoryContent.BytesOf(options.DataDirectory, DataDirectory.LogName);
        long state = DirectoryContent.BytesOf(options.DataDirectory, DataDirectoryIdentity.StateDirectoryName);
        output.WriteLine(string.Create(CultureInfo.InvariantCulture, $"""
            Rebuild of node {options.NodeId} of cluster '{options.ClusterId}' in {options.DataDirectory}. This drops
              its log    {log,15:N0} bytes
              its state  {state,15:N0} bytes
            and the node comes back from the other nodes. Go on only when the majority of them is intact: what they lost, too, is lost then.
            """));
        if (options.RebuildConfirmed)
        {
            return;
        }

        if (terminal is null)
        {
            throw new DataDirectoryException($"Nothing was dropped: there is no terminal to ask on. Add {OptionSetting.Yes.Flag} to go on without the question.");
        }

        output.Write("Type the node id to go on: ");
        output.Flush();
        if (terminal.ReadLine()?.Trim() != options.NodeId.ToString())
        {
            throw new DataDirectoryException("Nothing was dropped: that was not the node id.");
        }
    }

    /// <summary>
    /// What this node knows of others is needed by them and stays. But only a directory that voted has met them all: the record of one that did not, which may be
    /// a wiped one, is no proof that something never was, and a damaged record is none at all.
    /// </summary>
    private static void KeepMembers(NodeOptions options, DataDirectoryIdentity? old)
    {
        MembersFile? members;
        try
        {
            members = MembersFile.TryRead(options.DataDirectory);
        }
        catch (DataDirectoryException)
        {
            new MembersFile(FromTheBeginning: false, []).Write(options.DataDirectory);
            return;
        }

        if (members is { FromTheBeginning: true } && (old is null || old.Voting == VotingState.Unproven))
        {
            (members with { FromTheBeginning = false }).Write(options.DataDirectory);
        }
    }
}
