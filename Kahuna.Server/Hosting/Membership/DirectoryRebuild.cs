using System.Globalization;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Storage;

namespace Kahuna.Server.Hosting.Membership;

/// <summary>
/// <c>--rebuild</c>: drops log and state of a node so that the others restore it (docs/adr/0009-who-may-vote.md). Reads
/// neither, so that damage does not matter. Used by one thread, before the node starts.
/// </summary>
internal static class DirectoryRebuild
{
    /// <summary>
    /// Asks for confirmation, drops the content, and leaves a rejoining directory. The answer is read from
    /// <paramref name="terminal"/>; null if nobody can answer.
    /// </summary>
    /// <exception cref="DataDirectoryException">Nothing or not everything was dropped; the message says which, in one
    /// line.</exception>
    public static void Run(NodeOptions options, TextReader? terminal, TextWriter output)
    {
        if (options.IsStandalone)
        {
            throw new DataDirectoryException(
                "Nothing was dropped: a standalone node has no other node to restore its data from.");
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

            // First the mark: a half-dropped directory must be recognizable, and the new id keeps old content out.
            rejoining.Write(options.DataDirectory);
            DirectoryContent.Drop(options.DataDirectory);
            (rejoining with { Dropping = false }).Write(options.DataDirectory);
            output.WriteLine(
                $"Dropped. Node {options.NodeId} starts empty and does not vote until the "
                    + $"other nodes have restored it.");
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw new DataDirectoryException(
                $"The rebuild of {options.DataDirectory} failed: {OneLine.Of(error.Message)} Start the node with "
                    + $"--rebuild again when the cause is gone.",
                error);
        }
    }

    /// <summary>Reads the old identity if possible. Refuses the directory of another node.</summary>
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
            and the other nodes restore it. Continue only if a majority of them is intact: data that they have lost too is lost.
            """));
        if (options.RebuildConfirmed)
        {
            return;
        }

        if (terminal is null)
        {
            throw new DataDirectoryException(
                $"Nothing was dropped: there is no terminal for the confirmation. Add "
                    + $"{OptionSetting.Yes.Flag} to confirm.");
        }

        output.Write("Type the node id to continue: ");
        output.Flush();
        if (terminal.ReadLine()?.Trim() != options.NodeId.ToString())
        {
            throw new DataDirectoryException("Nothing was dropped: that was not the node id.");
        }
    }

    /// <summary>
    /// Keeps the record of the other nodes' directories, which they rely on. Only a directory that has voted has met
    /// all of them: the record of one that has not, which may have been wiped, proves nothing about nodes that are
    /// missing in it. Nor does a damaged record.
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
