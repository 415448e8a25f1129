using Xunit.Abstractions;
using Xunit.Sdk;

namespace Kahuna.Tests.Simulation;

/// <summary>Runs the tests of a class in the order of their names. Stateless.</summary>
public sealed class ByName : ITestCaseOrderer
{
    public IEnumerable<TTestCase> OrderTestCases<TTestCase>(IEnumerable<TTestCase> testCases)
        where TTestCase : ITestCase =>
            testCases.OrderBy(static test => test.TestMethod.Method.Name, StringComparer.Ordinal);
}
