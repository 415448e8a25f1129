Console.WriteLine("kahuna-bench");
