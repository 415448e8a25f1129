using Kahuna.Server.Access;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>
/// Makes the administrator of the bootstrap file once the node can, and tries again until there is a user. Owned by the
/// node.
/// </summary>
/// <param name="file">Name and password.</param>
/// <param name="first">Makes it.</param>
/// <param name="log">The node's log.</param>
internal sealed class Bootstrap(BootstrapFile file, FirstAdministrator first, ILogger log)
{
    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(500);

    /// <summary>Ends when there is a user, or with the token.</summary>
    public async Task RunAsync(CancellationToken stop)
    {
        try
        {
            while (true)
            {
                FirstAdministrator.Result result = await first.MakeAsync(Caller.Node, file.User, file.Password, stop)
                    .ConfigureAwait(false);
                switch (result)
                {
                    case FirstAdministrator.Result.Made:
                        log.FirstAdministratorMade(file.User);
                        return;
                    case FirstAdministrator.Result.HasUsers:
                        log.BootstrapIgnored();
                        return;
                    default:
                        await Task.Delay(s_pause, stop).ConfigureAwait(false);
                        break;
                }
            }
        }
        catch (OperationCanceledException)
        {
            // The node stops.
        }
    }
}
