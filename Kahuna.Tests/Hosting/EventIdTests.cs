using System.Reflection;
using Kahuna.Client;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Administration;
using Kahuna.Server.Hosting.Certificates;
using Microsoft.Extensions.Logging;

namespace Kahuna.Tests.Hosting;

/// <summary>An event's id says in its category what it is.</summary>
public sealed class EventIdTests
{
    /// <summary>The events of <see cref="NodeLog"/> whose lines bring their own fields.</summary>
    private static readonly int[] s_byHand = [2, 5, 25];

    [Fact]
    public void No_id_stands_for_two_events_of_a_category()
    {
        (string Category, int Id)[] events =
        [
            .. s_byHand.Select(id => (nameof(NodeLog), id)),
            .. new[] { typeof(NodeLog).Assembly, typeof(KahunaClient).Assembly }
                .SelectMany(assembly => assembly.GetTypes())
                .SelectMany(type => type.GetMethods(
                    BindingFlags.Static
                        | BindingFlags.Instance
                        | BindingFlags.Public
                        | BindingFlags.NonPublic
                        | BindingFlags.DeclaredOnly))
                .Select(method =>
                    (
                        Category: CategoryOf(method.DeclaringType!),
                        method.GetCustomAttribute<LoggerMessageAttribute>()?.EventId))
                .Where(found => found.EventId is not null)
                .Select(found => (found.Category, found.EventId!.Value)),
        ];

        // One class of events for each category, so that a name is a category.
        Assert.Equal(
            ["CallLog", "ConnectionLog", "LockLog", "NodeLog", "PeerLog", "SettlingLog", "WatchLog"],
            events.Select(found => found.Category).Distinct().Order(StringComparer.Ordinal));
        Assert.Empty(events.GroupBy(found => found).Where(same => same.Count() > 1).Select(same => same.Key));
    }

    /// <summary>The events of certificates and of administration are written to the node's log.</summary>
    private static string CategoryOf(Type log) =>
        log == typeof(CertificateLog) || log == typeof(AdministrationLog) ? nameof(NodeLog) : log.Name;
}
