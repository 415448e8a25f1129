using Kahuna.Server.Access;

namespace Kahuna.Tests.Access;

/// <summary>What tests expect of the answers to changes. Stateless.</summary>
internal static class AccessAnswers
{
    public static T Good<T>(AccessAnswer<T> answer)
        where T : class
    {
        Assert.True(answer.Problem is null, answer.Problem?.Sentence);
        return answer.Value!;
    }

    public static void AssertRefused<T>(AccessRefusal reason, AccessAnswer<T> answer)
        where T : class
    {
        Assert.Equal(reason, answer.Problem?.Reason);
        Assert.Null(answer.Value);
        Assert.EndsWith(".", answer.Problem!.Sentence);
        Assert.DoesNotContain('\n', answer.Problem.Sentence);
    }
}
