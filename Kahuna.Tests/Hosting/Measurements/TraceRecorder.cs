using System.Collections.Concurrent;
using System.Diagnostics;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>
/// Listens to activities of one trace, that of <see cref="Root"/>, which is the current activity while it exists. Other
/// tests of the process are left alone. Owned by one test.
/// </summary>
internal sealed class TraceRecorder : IDisposable
{
    private readonly ConcurrentQueue<Activity> _ended = new();
    private readonly List<Activity> _seen = [];
    private readonly HashSet<Activity> _given = [];
    private readonly ActivityListener _listener;
    private volatile bool _throws;

    /// <param name="sources">Whose activities are recorded.</param>
    public TraceRecorder(params string[] sources)
    {
        Root = new Activity("test").SetIdFormat(ActivityIdFormat.W3C);
        Root.ActivityTraceFlags = ActivityTraceFlags.Recorded;
        Root.Start();
        ActivityTraceId own = Root.TraceId;
        _listener = new ActivityListener
        {
            ShouldListenTo = source => sources.Contains(source.Name),
            Sample = (ref ActivityCreationOptions<ActivityContext> asked) =>
                asked.Parent.TraceId == own && (asked.Parent.TraceFlags & ActivityTraceFlags.Recorded) != 0
                    ? ActivitySamplingResult.AllDataAndRecorded
                    : ActivitySamplingResult.None,
            ActivityStarted = activity => Fail(activity, own),
            ActivityStopped = activity =>
            {
                Fail(activity, own);
                if (activity.TraceId == own)
                {
                    _ended.Enqueue(activity);
                }
            },
        };
        ActivitySource.AddActivityListener(_listener);
    }

    /// <summary>The activity of the test.</summary>
    public Activity Root { get; }

    /// <summary>Every callback throws.</summary>
    public bool Throws
    {
        set => _throws = value;
    }

    /// <summary>The names of all activities so far, in their order.</summary>
    public string[] Seen
    {
        get
        {
            Gather();
            return [.. _seen.Select(static activity => activity.OperationName).Order()];
        }
    }

    /// <summary>The next activity of this source with this name; each is given once.</summary>
    public async Task<Activity> NextAsync(string source, string name)
    {
        Activity? found = null;
        await Wait.UntilAsync(
            () =>
            {
                Gather();
                found = _seen.FirstOrDefault(activity =>
                    activity.Source.Name == source && activity.OperationName == name && !_given.Contains(activity));
                return Task.FromResult(found is not null);
            },
            LastNet.Minute);
        _given.Add(found!);
        return found!;
    }

    /// <inheritdoc/>
    public void Dispose()
    {
        _listener.Dispose();
        Root.Dispose();
    }

    private void Gather()
    {
        while (_ended.TryDequeue(out Activity? activity))
        {
            _seen.Add(activity);
        }
    }

    private void Fail(Activity activity, ActivityTraceId own)
    {
        if (_throws && activity.TraceId == own)
        {
            throw new InvalidOperationException("The listener has failed.");
        }
    }
}
