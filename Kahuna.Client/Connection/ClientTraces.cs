using System.Diagnostics;

namespace Kahuna.Client.Connection;

/// <summary>
/// The traces of all clients of the process, as the activity source <c>Kahuna.Client</c> (docs/traces.md). An operation
/// is an activity while somebody listens and samples it. What listeners do with the current activity, or throw, does
/// not reach the application or the client's own threads. Stateless; any thread.
/// </summary>
internal static class ClientTraces
{
    /// <summary>The name of the source.</summary>
    public const string Name = "Kahuna.Client";

    private static readonly ActivitySource s_source =
        new(Name, typeof(ClientTraces).Assembly.GetName().Version?.ToString(3));

    /// <summary>Somebody listens.</summary>
    public static bool IsListened => s_source.HasListeners();

    /// <summary>
    /// An operation begins. Returns its activity, or else the caller's if that is recorded, which the nodes are told
    /// about; null: nobody traces it.
    /// </summary>
    /// <param name="request">The operation.</param>
    /// <param name="current">The caller's activity.</param>
    /// <param name="isOwn">The activity is the operation's, and ends with it.</param>
    public static Activity? Begin(in OperationRequest request, Activity? current, out bool isOwn)
    {
        if (s_source.HasListeners() && Start(in request, current) is { } own)
        {
            isOwn = true;
            return own;
        }

        isOwn = false;
        return current is { Recorded: true, IdFormat: ActivityIdFormat.W3C } ? current : null;
    }

    /// <summary>An operation is sent again.</summary>
    public static void Retried(Activity activity, bool isMove) =>
        activity.AddEvent(new ActivityEvent(isMove ? "moved" : "retried"));

    /// <summary>An operation with an activity of its own has ended.</summary>
    /// <param name="activity">The activity.</param>
    /// <param name="failure">Why it failed; null: it did not.</param>
    public static void End(Activity activity, Exception? failure)
    {
        Activity? current = Activity.Current;
        try
        {
            string outcome = ClientMeter.OutcomeOf(failure);
            activity.SetTag("kahuna.outcome", outcome);
            if (failure is not null)
            {
                activity.SetTag("error.type", outcome);
                activity.SetStatus(ActivityStatusCode.Error, failure.Message);
            }

            activity.Dispose();
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            // A listener of the application has failed; its operations must not.
        }
        finally
        {
            Restore(current);
        }
    }

    private static Activity? Start(in OperationRequest request, Activity? current)
    {
        string name = ClientMeter.NameOf(request.Kind);
        Activity? activity = null;
        try
        {
            activity = s_source.StartActivity(name, ActivityKind.Client);
            activity?.SetTag("db.system.name", "kahuna");
            activity?.SetTag("db.operation.name", name);
            activity?.SetTag(
                "kahuna.durability", request.Durability == Durability.Ephemeral ? "ephemeral" : "persistent");
        }
        catch (Exception error) when (error is not OutOfMemoryException)
        {
            // As above.
        }
        finally
        {
            Restore(current);
        }

        return activity;
    }

    /// <summary>Starting and stopping an activity changes the current one of the thread's flow.</summary>
    private static void Restore(Activity? current)
    {
        if (Activity.Current != current)
        {
            Activity.Current = current;
        }
    }
}
